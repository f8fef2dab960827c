# frozen_string_literal: true

require_relative "wire/code"
require_relative "wire/frames"
require_relative "wire/parser"
require_relative "wire/properties"
require_relative "wire/reader"
require_relative "wire/type"

module Hikyaku
  module Broker
    # The broker's protocol as bytes (docs/protocol.md). The methods build frames, and {Reader} parses them.
    #
    # Each method returns a binary String, and raises ArgumentError when a value does not fit its field. The broker decides whether a value is
    # allowed. Durations are milliseconds.
    module Wire
      BYTE = 0xFF
      SHORT = 0xFFFF
      WORD = 0xFFFF_FFFF
      LONG = 0xFFFF_FFFF_FFFF_FFFF
      private_constant :BYTE, :SHORT, :WORD, :LONG

      class << self
        # @return [Integer] milliseconds
        # @raise [ArgumentError] the field would overflow
        def milliseconds(seconds)
          return (seconds * 1000).round if seconds.is_a?(Numeric) && seconds >= 0 && seconds < 4_294_967
          raise ArgumentError, "expected seconds from 0 to 4294966, got #{seconds.inspect}"
        end

        # HELLO (section 3).
        def hello(id: 1, lowest: 1, highest: 1, features: 0, max_frame: 1024 * 1024, heartbeat: 0, epoch: 0, authentication: 0,
          identity: "", credentials: "", agent: "")
          fits(SHORT, lowest: lowest, highest: highest)
          fits(WORD, features: features, max_frame: max_frame, heartbeat: heartbeat)
          fits(LONG, id: id, epoch: epoch)
          fits(BYTE, authentication: authentication, "bytes of identity": identity.bytesize, "bytes of agent": agent.bytesize)
          fits(16_384, "bytes of credentials": credentials.bytesize)
          [56 + identity.bytesize + credentials.bytesize + agent.bytesize, Type::HELLO, 0, 0, id, ClientParser::MAGIC, lowest, highest, features,
            max_frame, heartbeat, epoch, authentication, 0, identity.bytesize, credentials.bytesize, agent.bytesize,
            identity, credentials, agent].pack("VCCvQ<a8vvVVVQ<CCvvva*a*a*")
        end

        # SEND (section 4). `properties` are packed ({Properties}).
        def send_message(to:, payload:, id: 0, kind: 0, properties: "", sequence: 0, delay: 0, time_to_live: 0, priority: 4, level: 255)
          to_send(to, id, kind, sequence, delay, time_to_live, priority, level)
          fits(SHORT, "bytes of properties": properties.bytesize)
          size = fits_frame(40 + to.bytesize + properties.bytesize + payload.bytesize)
          [size, Type::SEND, 0, 0, id, sequence, delay, time_to_live, priority, level, to.bytesize, properties.bytesize, kind, 0,
            to, properties, payload].pack("VCCvQ<Q<VVCCvvCCa*a*a*")
        end

        # SEND_BATCH (section 4).
        def send_batch(to:, messages:, id: 0, kind: 0, sequence: 0, delay: 0, time_to_live: 0, priority: 4, level: 255)
          to_send(to, id, kind, sequence, delay, time_to_live, priority, level)
          fits(SHORT, "number of messages": messages.size)
          bytes = [0, Type::SEND_BATCH, 0, 0, id, sequence, delay, time_to_live, priority, level, to.bytesize, 0, kind, 0, to,
            messages.size].pack("VCCvQ<Q<VVCCvvCCa*V")
          messages.each do |properties, payload|
            fits(SHORT, "bytes of properties": properties.bytesize)
            bytes << [properties.bytesize + payload.bytesize, properties.bytesize, properties, payload].pack("Vva*a*")
          end
          sized(bytes)
        end

        # SUBSCRIBE (section 7).
        def subscribe(subscription:, name:, id: 0, kind: 0, credit: 0, credit_bytes: 0, lease: 0)
          fits(WORD, credit: credit, credit_bytes: credit_bytes, lease: lease)
          fits(BYTE, kind: kind)
          fits(SHORT, subscription: subscription, "bytes of the name": name.bytesize)
          fits(LONG, id: id)
          [32 + name.bytesize, Type::SUBSCRIBE, 0, subscription, id, credit, credit_bytes, lease, kind, 0, name.bytesize, name]
            .pack("VCCvQ<VVVCCva*")
        end

        # UNSUBSCRIBE (section 7).
        def unsubscribe(subscription:, id: 0)
          fits(SHORT, subscription: subscription)
          bare(Type::UNSUBSCRIBE, id, subscription)
        end

        # CREDIT (section 7).
        def credit(subscription:, credit:, id: 0, credit_bytes: 0)
          fits(SHORT, subscription: subscription)
          fits(WORD, credit: credit, credit_bytes: credit_bytes)
          fits(LONG, id: id)
          [24, Type::CREDIT, 0, subscription, id, credit, credit_bytes].pack("VCCvQ<VV")
        end

        # FREE (section 7).
        def free(first:, last: first, id: 0, level: nil)
          fits(2, level: level) if level
          fits(LONG, id: id, first: first, last: last)
          [32, Type::FREE, level ? level + 1 : 0, 0, id, first, last].pack("VCCvQ<Q<Q<")
        end

        # NACK (section 8).
        def nack(delivery:, id: 0, kind: 0, delay: 0, reason: "")
          fits(LONG, id: id, delivery: delivery)
          fits(WORD, delay: delay)
          fits(BYTE, kind: kind)
          fits(SHORT, "bytes of reason": reason.bytesize)
          [32 + reason.bytesize, Type::NACK, 0, 0, id, delivery, delay, kind, 0, reason.bytesize, reason].pack("VCCvQ<Q<VCCva*")
        end

        # TOUCH (section 7).
        def touch(first:, last: first, id: 0, lease: 0)
          fits(LONG, id: id, first: first, last: last)
          fits(WORD, lease: lease)
          [40, Type::TOUCH, 0, 0, id, first, last, lease, 0].pack("VCCvQ<Q<Q<VV")
        end

        # PING.
        def ping(id: 0) = bare(Type::PING, id)

        # DRAIN of a client (section 10).
        def drain(id: 0) = bare(Type::DRAIN, id)

        # DRAIN with which the broker may forget the client's identity (section 10).
        def forget(id: 0) = bare(Type::DRAIN, id, flags: 1)

        # DRAIN of the broker (section 10).
        def draining(retry_after:, id: 0)
          fits(WORD, retry_after: retry_after)
          fits(LONG, id: id)
          [24, Type::DRAIN, 0, 0, id, retry_after, 0].pack("VCCvQ<VV")
        end

        # QUERY (section 9).
        def query(what:, id: 0, kind: 0, name: "", limit: 0, number: 0)
          fits(BYTE, what: what, kind: kind)
          fits(SHORT, "bytes of the name": name.bytesize)
          fits(WORD, limit: limit)
          fits(LONG, id: id, number: number)
          [32 + name.bytesize, Type::QUERY, 0, 0, id, what, kind, name.bytesize, limit, number, name].pack("VCCvQ<CCvVQ<a*")
        end

        # ACK in 16 bytes: to a PUSH or to a PING.
        def receipt(id:) = bare(Type::ACK, id)

        # ACK of the broker (section 5).
        def ack(id:, request:, level: 0, count: 0, value: 0, last: nil, duplicate: false, refusals: [])
          fits(BYTE, request: request, level: level)
          fits(SHORT, "number of refusals": refusals.size)
          fits(WORD, count: count)
          fits(LONG, id: id, value: value, last: last || 0)
          size = 32 + (last ? 8 : 0) + refusals.size * 12
          bytes = [size, Type::ACK, (last ? 1 : 0) | (duplicate ? 2 : 0), 0, id, request, level, refusals.size, count, value].pack("VCCvQ<CCvVQ<")
          bytes << [last].pack("Q<") if last
          refusals.each { |index, code, retry_after| bytes << [index, code, 0, retry_after].pack("VvvV") }
          bytes
        end

        # ACK to a HELLO (section 3).
        def welcome(id:, levels:, level:, max_frame:, session:, version: 1, features: 0, heartbeat: 0, window_messages: 4096,
          window_bytes: 8 * 1024 * 1024, low: 0)
          fits(SHORT, version: version)
          fits(BYTE, levels: levels, level: level)
          fits(WORD, features: features, max_frame: max_frame, heartbeat: heartbeat, window_messages: window_messages, window_bytes: window_bytes)
          fits(LONG, id: id, session: session, low: low)
          [72, Type::ACK, 0, 0, id, Type::HELLO, 0, 0, 0, 0, version, levels, level, features, max_frame, heartbeat,
            window_messages, window_bytes, session, low].pack("VCCvQ<CCvVQ<vCCVVVVVQ<Q<")
        end

        # ERROR (section 5). The code decides whether the request may succeed later.
        def error(code:, sentence:, id: 0, subscription: 0, scope: 0, retry_after: 0, delivery: 0)
          fits(SHORT, code: code, subscription: subscription)
          fits(2, scope: scope)
          fits(WORD, retry_after: retry_after)
          fits(LONG, id: id, delivery: delivery)
          [32 + sentence.bytesize, Type::ERROR, 0, subscription, id, code, scope, Code.later?(code) ? 1 : 0, retry_after, delivery, sentence]
            .pack("VCCvQ<vCCVQ<a*")
        end

        # PUSH (section 7).
        def push(id:, subscription:, message:, payload:, sent_at:, lease:, attempt: 1, failures: 0, crashes: 0, priority: 4,
          redelivered: false, poison_candidate: false, properties: "")
          fits(BYTE, priority: priority)
          fits(SHORT, subscription: subscription, attempt: attempt, failures: failures, crashes: crashes, "bytes of properties": properties.bytesize)
          fits(WORD, lease: lease)
          fits(LONG, id: id, message: message, sent_at: sent_at)
          [fits_frame(48 + properties.bytesize + payload.bytesize), Type::PUSH, (redelivered ? 1 : 0) | (poison_candidate ? 2 : 0), subscription, id, message,
            sent_at, lease, attempt, failures, crashes, priority, 0, properties.bytesize, 0, properties, payload]
            .pack("VCCvQ<Q<Q<VvvvCCvva*a*")
        end

        # REPORT (section 9).
        def report(document:, id: 0)
          fits(LONG, id: id)
          [fits_frame(16 + document.bytesize), Type::REPORT, 0, 0, id, document].pack("VCCvQ<a*")
        end

        private

        def to_send(to, id, kind, sequence, delay, time_to_live, priority, level)
          fits(SHORT, "bytes of the destination": to.bytesize)
          fits(BYTE, kind: kind, priority: priority, level: level)
          fits(WORD, delay: delay, time_to_live: time_to_live)
          fits(LONG, id: id, sequence: sequence)
        end

        def bare(type, id, subscription = 0, flags: 0)
          fits(LONG, id: id)
          [16, type, flags, subscription, id].pack("VCCvQ<")
        end

        def sized(bytes)
          bytes[0, 4] = [fits_frame(bytes.bytesize)].pack("V")
          bytes
        end

        def fits_frame(size)
          fits(WORD, "bytes of the frame": size)
          size
        end

        def fits(max, **values)
          values.each do |name, value|
            next if value.is_a?(Integer) && value >= 0 && value <= max
            raise ArgumentError, "#{name} is a whole number from 0 to #{max}, not #{value.inspect}"
          end
        end
      end
    end
  end
end
