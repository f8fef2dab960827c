# frozen_string_literal: true

require_relative "frames"
require_relative "of_either"
require_relative "type"

module Hikyaku
  module Broker
    module Wire
      # Takes the frames of a client apart.
      module OfClient
        extend OfEither

        MAGIC = "HKB\r\n\x1A\n\x00".b.freeze
        PLAIN = [Type::UNSUBSCRIBE, Type::SUBSCRIBE, Type::CREDIT].freeze
        # Bits that are known; of other types none.
        FLAGS = {Type::FREE => 3, Type::DRAIN => 1}.freeze
        private_constant :PLAIN, :FLAGS

        class << self
          def read(buffer, at, size, type, flags, subscription, id)
            flags_within(FLAGS.fetch(type, 0), flags, type, id) unless flags.zero?
            no_subscription(subscription, type, id) unless subscription.zero? || PLAIN.include?(type)
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
            magic, lowest, highest, features, max_frame, heartbeat, epoch, authentication, nothing, identity, credentials, agent =
              buffer.unpack("a8vvVVVQ<CCvvv", offset: at + 16)
            malformed(type, id, "does not begin as HELLO of this protocol does") unless magic == MAGIC
            zero(nothing, type, id)
            exactly(56 + identity + credentials + agent, size, type, id)
            malformed(type, id, "has an identity or an agent of more than 255 bytes") if identity > 255 || agent > 255
            malformed(type, id, "has credentials of more than 16,384 bytes") if credentials > 16_384
            texts = [[0, identity], [identity, credentials], [identity + credentials, agent]].map { |from, length| buffer.byteslice(at + 56 + from, length) }
            Frames::Hello.new(id, lowest, highest, features, max_frame, heartbeat, epoch, authentication, *texts)
          end

          def send_message(buffer, at, size, id)
            at_least(40, size, Type::SEND, id)
            sequence, delay, time_to_live, priority, level, name, properties, kind, nothing = buffer.unpack("Q<VVCCvvCC", offset: at + 16)
            zero(nothing, Type::SEND, id) unless nothing == 0
            too_long(Type::SEND, id) if 40 + name + properties > size
            Frames::Send.new(id, sequence, delay, time_to_live, priority, level, kind, buffer.byteslice(at + 40, name), properties,
              own(buffer, at + 40 + name, size - 40 - name))
          end

          def send_batch(buffer, at, size, id)
            type = Type::SEND_BATCH
            at_least(44, size, type, id)
            sequence, delay, time_to_live, priority, level, name, nothing, kind, nothing_either = buffer.unpack("Q<VVCCvvCC", offset: at + 16)
            zero(nothing | nothing_either, type, id)
            too_long(type, id) if 44 + name > size
            messages = items(buffer, at + 40 + name, at + size, id)
            Frames::SendBatch.new(id, sequence, delay, time_to_live, priority, level, kind, buffer.byteslice(at + 40, name), messages)
          end

          # Each message has 6 bytes at least: a number that cannot be true is found before anything is made for it.
          def items(buffer, at, finish, id)
            type = Type::SEND_BATCH
            count = buffer.unpack1("V", offset: at)
            at += 4
            too_long(type, id) if count * 6 > finish - at
            messages = Array.new(count) do
              too_long(type, id) if at + 6 > finish
              size, properties = buffer.unpack("Vv", offset: at)
              at += 6
              too_long(type, id) if size > finish - at
              malformed(type, id, "has a message whose properties are longer than itself") if properties > size
              at += size
              Frames::Item.new(properties, own(buffer, at - size, size)).freeze
            end
            malformed(type, id, "is longer than its fields say") unless at == finish
            messages.freeze
          end

          # Bytes of their own: a slice may keep all that was read with it.
          def own(buffer, at, size) = buffer.unpack1("a#{size}", offset: at)

          def subscribe(buffer, at, size, subscription, id)
            at_least(32, size, Type::SUBSCRIBE, id)
            credit, credit_bytes, lease, kind, nothing, name = buffer.unpack("VVVCCv", offset: at + 16)
            zero(nothing, Type::SUBSCRIBE, id)
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
            delivery, delay, kind, nothing, words = buffer.unpack("Q<VCCv", offset: at + 16)
            zero(nothing, Type::NACK, id)
            exactly(32 + words, size, Type::NACK, id)
            Frames::Nack.new(id, delivery, delay, kind, buffer.byteslice(at + 32, words))
          end

          def touch(buffer, at, size, id)
            exactly(40, size, Type::TOUCH, id)
            first, last, lease, nothing = buffer.unpack("Q<Q<VV", offset: at + 16)
            zero(nothing, Type::TOUCH, id)
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
      end
    end
  end
end
