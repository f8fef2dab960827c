# frozen_string_literal: true

require_relative "frames"
require_relative "of_either"
require_relative "type"

module Hikyaku
  module Broker
    module Wire
      # Takes the frames of the broker apart.
      module OfBroker
        extend OfEither

        RANGE = 1
        DUPLICATE = 2
        AGAIN = 1
        SUSPECT = 2
        KNOWN_FLAGS = {Type::ACK => RANGE | DUPLICATE, Type::PUSH => AGAIN | SUSPECT}.freeze
        WITH_SUBSCRIPTION = [Type::PUSH, Type::ERROR].freeze
        private_constant :RANGE, :DUPLICATE, :AGAIN, :SUSPECT, :KNOWN_FLAGS, :WITH_SUBSCRIPTION

        class << self
          def read(buffer, at, size, type, flags, subscription, id)
            flags_within(KNOWN_FLAGS.fetch(type, 0), flags, type, id) unless flags.zero?
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
            message, sent_at, lease, attempt, failures, crashes, priority, nothing, properties, nothing_either =
              buffer.unpack("Q<Q<VvvvCCvv", offset: at + 16)
            zero(nothing | nothing_either, Type::PUSH, id)
            too_long(Type::PUSH, id) if 48 + properties > size
            Frames::Push.new(id, subscription, message, sent_at, lease, attempt, failures, crashes, priority, flags.anybits?(AGAIN),
              flags.anybits?(SUSPECT), properties, buffer.byteslice(at + 48, size - 48))
          end

          def any_ack(buffer, at, size, flags, id)
            if size == 16
              flags_within(0, flags, Type::ACK, id)
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
            malformed(Type::ACK, id, "is of a request that there is not: #{request}") unless request.between?(Type::HELLO, Type::TOUCH)
            malformed(Type::ACK, id, "refuses messages of what is no SEND_BATCH") unless refusals.zero? || request == Type::SEND_BATCH
            malformed(Type::ACK, id, "is a range of what is no SEND") unless flags.nobits?(RANGE) || request == Type::SEND
            malformed(Type::ACK, id, "says DUPLICATE of what is no SEND") unless flags.nobits?(DUPLICATE) || request.between?(Type::SEND, Type::SEND_BATCH)
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
            retry_after, nothing = buffer.unpack("VV", offset: at + 16)
            zero(nothing, Type::DRAIN, id)
            Frames::Draining.new(id, retry_after)
          end
        end
      end
    end
  end
end
