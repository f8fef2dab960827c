# frozen_string_literal: true

module Hikyaku
  module Broker
    module Wire
      # What a {Reader} yields: a frozen Struct for each type of frame, with the fields of docs/protocol.md in their order.
      # Numbers are as they came; durations are milliseconds; strings are binary.
      module Frames
        # HELLO of a client.
        Hello = Struct.new(:id, :lowest, :highest, :features, :max_frame, :heartbeat, :epoch, :authentication, :identity, :credentials, :agent) do
          def inspect = "#<HELLO identity=#{identity.inspect} epoch=#{epoch} agent=#{agent.inspect}>"
          alias_method :to_s, :inspect
        end

        # `content` is the properties followed by the payload, as in the frame.
        module Content
          def properties = content.byteslice(0, properties_size)

          def payload = content.byteslice(properties_size, content.bytesize)
        end

        # SEND.
        Send = Struct.new(:id, :sequence, :delay, :time_to_live, :priority, :level, :kind, :destination, :properties_size, :content) do
          include Content
        end

        # SEND_BATCH; `messages` are {Item}s.
        SendBatch = Struct.new(:id, :sequence, :delay, :time_to_live, :priority, :level, :kind, :destination, :messages)

        # One message of a SEND_BATCH.
        Item = Struct.new(:properties_size, :content) do
          include Content
        end

        # SUBSCRIBE.
        Subscribe = Struct.new(:id, :subscription, :credit, :credit_bytes, :lease, :kind, :name)

        # UNSUBSCRIBE.
        Unsubscribe = Struct.new(:id, :subscription)

        # CREDIT.
        Credit = Struct.new(:id, :subscription, :credit, :credit_bytes)

        # FREE; `level` is the requested level plus one, or 0.
        Free = Struct.new(:id, :first, :last, :level)

        # NACK.
        Nack = Struct.new(:id, :delivery, :delay, :kind, :reason)

        # TOUCH.
        Touch = Struct.new(:id, :first, :last, :lease)

        # PING of either side.
        Ping = Struct.new(:id)

        # DRAIN of a client.
        Drain = Struct.new(:id)

        # DRAIN with which the broker may forget the identity of the client.
        Forget = Struct.new(:id)

        # DRAIN of the broker.
        Draining = Struct.new(:id, :retry_after)

        # QUERY.
        Query = Struct.new(:id, :what, :kind, :limit, :number, :name)

        # ACK in 16 bytes: of a client to a PUSH, of either side to a PING.
        Receipt = Struct.new(:id)

        # ACK of the broker to any request but HELLO; `last` with RANGE alone, else `id`; `refusals` are {Refusal}s.
        Ack = Struct.new(:id, :request, :level, :count, :value, :last, :duplicate, :refusals) do
          def duplicate? = duplicate
        end

        # One message of a SEND_BATCH that was refused.
        Refusal = Struct.new(:index, :code, :retry_after)

        # ACK to a HELLO.
        Welcome = Struct.new(:id, :version, :levels, :level, :features, :max_frame, :heartbeat, :window_messages, :window_bytes, :session, :low)

        # ERROR.
        Error = Struct.new(:id, :subscription, :code, :scope, :later, :retry_after, :delivery, :sentence) do
          def later? = later

          def ends_subscription? = scope == 1

          def ends_connection? = scope == 2
        end

        # PUSH; `id` is the delivery.
        Push = Struct.new(:id, :subscription, :message, :sent_at, :lease, :attempt, :failures, :crashes, :priority, :redelivered, :poison_candidate,
          :properties_size, :content) do
          include Content

          def redelivered? = redelivered

          def poison_candidate? = poison_candidate
        end

        # REPORT; `document` is JSON.
        Report = Struct.new(:id, :document)

        # The name of a frame, for tests and logs.
        def self.name_of(frame)
          case frame
          when SendBatch then :SEND_BATCH
          when Draining, Forget then :DRAIN
          when Receipt, Welcome then :ACK
          else frame.class.name[/\w+\z/].upcase.to_sym
          end
        end
      end
    end
  end
end
