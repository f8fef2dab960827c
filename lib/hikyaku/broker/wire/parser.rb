# frozen_string_literal: true

require_relative "code"
require_relative "frames"
require_relative "type"
require_relative "../../error"

module Hikyaku
  module Broker
    module Wire
      # Bytes that are not a frame, or a frame that this side may not send. The connection has to end.
      class ProtocolError < StandardError
        include Hikyaku::Error

        attr_reader :code
        attr_reader :id

        def initialize(code, message, id: 0)
          super(message)
          @code = code
          @id = id
        end
      end

      # Parses the frames of one side. It checks their shape: lengths, flags and reserved bytes. The engine checks values.
      class Parser
        HEADER_BYTES = 16

        private

        def ping(size, id)
          exactly(16, size, Type::PING, id)
          Frames::Ping.new(id)
        end

        def receipt(size, id)
          exactly(16, size, Type::ACK, id)
          Frames::Receipt.new(id)
        end

        def malformed(type, id, problem)
          raise ProtocolError.new(Code::MALFORMED, "#{Type::NAMES[type]} #{problem}", id: id)
        end

        def exactly(bytes, size, type, id)
          malformed(type, id, "has #{size} bytes, expected #{bytes}") unless size == bytes
        end

        def at_least(bytes, size, type, id)
          malformed(type, id, "has #{size} bytes, expected #{bytes} or more") if size < bytes
        end

        def zero(value, type, id)
          malformed(type, id, "has a reserved field that is not 0") unless value.zero?
        end

        def known_flags(known, flags, type, id)
          malformed(type, id, "has unknown flags: #{flags & ~known}") if flags.anybits?(~known)
        end

        def no_subscription(subscription, type, id)
          malformed(type, id, "belongs to no subscription, but names #{subscription}") unless subscription.zero?
        end

        def too_short(type, id) = malformed(type, id, "is shorter than its fields")
      end

      # Parses the frames of a client.
      class ClientParser < Parser
        MAGIC = "HKB\r\n\x1A\n\x00".b.freeze
        WITH_SUBSCRIPTION = [Type::UNSUBSCRIBE, Type::SUBSCRIBE, Type::CREDIT].freeze
        FLAGS = {Type::FREE => 3, Type::DRAIN => 1}.freeze
        private_constant :WITH_SUBSCRIPTION, :FLAGS

        def read(buffer, at, size, type, flags, subscription, id)
          known_flags(FLAGS.fetch(type, 0), flags, type, id) unless flags.zero?
          no_subscription(subscription, type, id) unless subscription.zero? || WITH_SUBSCRIPTION.include?(type)
          frame =
            case type
            when Type::SEND then send_message(buffer, at, size, id)
            when Type::FREE then free(buffer, at, size, flags, id)
            when Type::ACK then receipt(size, id)
            when Type::SEND_BATCH then send_batch(buffer, at, size, id)
            when Type::NACK then nack(buffer, at, size, id)
            when Type::TOUCH then touch(buffer, at, size, id)
            when Type::CREDIT then credit(buffer, at, size, subscription, id)
            when Type::PING then ping(size, id)
            when Type::SUBSCRIBE then subscribe(buffer, at, size, subscription, id)
            when Type::UNSUBSCRIBE then unsubscribe(size, subscription, id)
            when Type::QUERY then query(buffer, at, size, id)
            when Type::DRAIN then drain(size, flags, id)
            else hello(buffer, at, size, id)
            end
          frame.freeze
        end

        private

        def hello(buffer, at, size, id)
          type = Type::HELLO
          at_least(56, size, type, id)
          magic, lowest, highest, features, max_frame, heartbeat, epoch, authentication, reserved, identity, credentials, agent =
            buffer.unpack("a8vvVVVQ<CCvvv", offset: at + 16)
          malformed(type, id, "does not begin with the magic bytes of this protocol") unless magic == MAGIC
          zero(reserved, type, id)
          exactly(56 + identity + credentials + agent, size, type, id)
          malformed(type, id, "has an identity or an agent of more than 255 bytes") if identity > 255 || agent > 255
          malformed(type, id, "has credentials of more than 16,384 bytes") if credentials > 16_384
          texts = [[0, identity], [identity, credentials], [identity + credentials, agent]].map { |from, length| buffer.byteslice(at + 56 + from, length) }
          Frames::Hello.new(id, lowest, highest, features, max_frame, heartbeat, epoch, authentication, *texts)
        end

        def send_message(buffer, at, size, id)
          at_least(40, size, Type::SEND, id)
          sequence, delay, time_to_live, priority, level, name, properties, kind, reserved = buffer.unpack("Q<VVCCvvCC", offset: at + 16)
          zero(reserved, Type::SEND, id) unless reserved == 0
          too_short(Type::SEND, id) if 40 + name + properties > size
          Frames::Send.new(id, sequence, delay, time_to_live, priority, level, kind, buffer.byteslice(at + 40, name), properties,
            own(buffer, at + 40 + name, size - 40 - name))
        end

        def send_batch(buffer, at, size, id)
          type = Type::SEND_BATCH
          at_least(44, size, type, id)
          sequence, delay, time_to_live, priority, level, name, reserved, kind, also_reserved = buffer.unpack("Q<VVCCvvCC", offset: at + 16)
          zero(reserved | also_reserved, type, id)
          too_short(type, id) if 44 + name > size
          messages = items(buffer, at + 40 + name, at + size, id)
          Frames::SendBatch.new(id, sequence, delay, time_to_live, priority, level, kind, buffer.byteslice(at + 40, name), messages)
        end

        # A message has 6 bytes or more, so that an impossible count is refused before any allocation.
        def items(buffer, at, finish, id)
          type = Type::SEND_BATCH
          count = buffer.unpack1("V", offset: at)
          at += 4
          too_short(type, id) if count * 6 > finish - at
          messages = Array.new(count) do
            too_short(type, id) if at + 6 > finish
            size, properties = buffer.unpack("Vv", offset: at)
            at += 6
            too_short(type, id) if size > finish - at
            malformed(type, id, "has a message whose properties are longer than itself") if properties > size
            at += size
            Frames::Item.new(properties, own(buffer, at - size, size)).freeze
          end
          malformed(type, id, "is longer than its fields") unless at == finish
          messages.freeze
        end

        # A copy: a slice would keep the whole buffer alive.
        def own(buffer, at, size) = buffer.unpack1("a#{size}", offset: at)

        def subscribe(buffer, at, size, subscription, id)
          at_least(32, size, Type::SUBSCRIBE, id)
          credit, credit_bytes, lease, kind, reserved, name = buffer.unpack("VVVCCv", offset: at + 16)
          zero(reserved, Type::SUBSCRIBE, id)
          exactly(32 + name, size, Type::SUBSCRIBE, id)
          Frames::Subscribe.new(id, subscription, credit, credit_bytes, lease, kind, buffer.byteslice(at + 32, name))
        end

        def unsubscribe(size, subscription, id)
          exactly(16, size, Type::UNSUBSCRIBE, id)
          Frames::Unsubscribe.new(id, subscription)
        end

        def credit(buffer, at, size, subscription, id)
          exactly(24, size, Type::CREDIT, id)
          Frames::Credit.new(id, subscription, *buffer.unpack("VV", offset: at + 16))
        end

        def free(buffer, at, size, flags, id)
          exactly(32, size, Type::FREE, id)
          first, last = buffer.unpack("Q<Q<", offset: at + 16)
          Frames::Free.new(id, first, last, flags)
        end

        def nack(buffer, at, size, id)
          at_least(32, size, Type::NACK, id)
          delivery, delay, kind, reserved, reason = buffer.unpack("Q<VCCv", offset: at + 16)
          zero(reserved, Type::NACK, id)
          exactly(32 + reason, size, Type::NACK, id)
          Frames::Nack.new(id, delivery, delay, kind, buffer.byteslice(at + 32, reason))
        end

        def touch(buffer, at, size, id)
          exactly(40, size, Type::TOUCH, id)
          first, last, lease, reserved = buffer.unpack("Q<Q<VV", offset: at + 16)
          zero(reserved, Type::TOUCH, id)
          Frames::Touch.new(id, first, last, lease)
        end

        def drain(size, flags, id)
          exactly(16, size, Type::DRAIN, id)
          flags.zero? ? Frames::Drain.new(id) : Frames::Forget.new(id)
        end

        def query(buffer, at, size, id)
          at_least(32, size, Type::QUERY, id)
          what, kind, name, limit, number = buffer.unpack("CCvVQ<", offset: at + 16)
          exactly(32 + name, size, Type::QUERY, id)
          Frames::Query.new(id, what, kind, limit, number, buffer.byteslice(at + 32, name))
        end
      end

      # Parses the frames of the broker.
      class BrokerParser < Parser
        RANGE = 1
        DUPLICATE = 2
        REDELIVERED = 1
        POISON_CANDIDATE = 2
        FLAGS = {Type::ACK => RANGE | DUPLICATE, Type::PUSH => REDELIVERED | POISON_CANDIDATE}.freeze
        WITH_SUBSCRIPTION = [Type::PUSH, Type::ERROR].freeze
        private_constant :RANGE, :DUPLICATE, :REDELIVERED, :POISON_CANDIDATE, :FLAGS, :WITH_SUBSCRIPTION

        def read(buffer, at, size, type, flags, subscription, id)
          known_flags(FLAGS.fetch(type, 0), flags, type, id) unless flags.zero?
          no_subscription(subscription, type, id) unless subscription.zero? || WITH_SUBSCRIPTION.include?(type)
          frame =
            case type
            when Type::PUSH then push(buffer, at, size, flags, subscription, id)
            when Type::ACK then any_ack(buffer, at, size, flags, id)
            when Type::ERROR then error(buffer, at, size, subscription, id)
            when Type::PING then ping(size, id)
            when Type::REPORT then Frames::Report.new(id, buffer.byteslice(at + 16, size - 16))
            else draining(buffer, at, size, id)
            end
          frame.freeze
        end

        private

        def push(buffer, at, size, flags, subscription, id)
          at_least(48, size, Type::PUSH, id)
          message, sent_at, lease, attempt, failures, crashes, priority, reserved, properties, also_reserved =
            buffer.unpack("Q<Q<VvvvCCvv", offset: at + 16)
          zero(reserved | also_reserved, Type::PUSH, id)
          too_short(Type::PUSH, id) if 48 + properties > size
          Frames::Push.new(id, subscription, message, sent_at, lease, attempt, failures, crashes, priority, flags.anybits?(REDELIVERED),
            flags.anybits?(POISON_CANDIDATE), properties, buffer.byteslice(at + 48, size - 48))
        end

        def any_ack(buffer, at, size, flags, id)
          if size == 16
            known_flags(0, flags, Type::ACK, id)
            return receipt(size, id)
          end
          at_least(32, size, Type::ACK, id)
          request, level, refusals, count, value = buffer.unpack("CCvVQ<", offset: at + 16)
          check(request, refusals, size, flags, id)
          return welcome(buffer, at, id) if request == Type::HELLO
          last = flags.anybits?(RANGE) ? buffer.unpack1("Q<", offset: at + 32) : id
          refused = Array.new(refusals) { |index| Frames::Refusal.new(*buffer.unpack("VvxxV", offset: at + 32 + 12 * index)).freeze }
          Frames::Ack.new(id, request, level, count, value, last, flags.anybits?(DUPLICATE), refused.freeze)
        end

        def check(request, refusals, size, flags, id)
          malformed(Type::ACK, id, "answers an unknown type of request: #{request}") unless request.between?(Type::HELLO, Type::TOUCH)
          malformed(Type::ACK, id, "has refusals, but answers no SEND_BATCH") unless refusals.zero? || request == Type::SEND_BATCH
          malformed(Type::ACK, id, "has the flag RANGE, but answers no SEND") unless flags.nobits?(RANGE) || request == Type::SEND
          malformed(Type::ACK, id, "has the flag DUPLICATE, but answers no SEND") unless flags.nobits?(DUPLICATE) || request.between?(Type::SEND, Type::SEND_BATCH)
          more = (request == Type::HELLO) ? 40 : (flags & RANGE) * 8 + refusals * 12
          exactly(32 + more, size, Type::ACK, id)
        end

        def welcome(buffer, at, id)
          Frames::Welcome.new(id, *buffer.unpack("vCCVVVVVQ<Q<", offset: at + 32))
        end

        def error(buffer, at, size, subscription, id)
          at_least(32, size, Type::ERROR, id)
          code, scope, later, retry_after, delivery = buffer.unpack("vCCVQ<", offset: at + 16)
          sentence = buffer.byteslice(at + 32, size - 32).force_encoding(Encoding::UTF_8)
          Frames::Error.new(id, subscription, code, scope, later == 1, retry_after, delivery, sentence)
        end

        def draining(buffer, at, size, id)
          exactly(24, size, Type::DRAIN, id)
          retry_after, reserved = buffer.unpack("VV", offset: at + 16)
          zero(reserved, Type::DRAIN, id)
          Frames::Draining.new(id, retry_after)
        end
      end
    end
  end
end
