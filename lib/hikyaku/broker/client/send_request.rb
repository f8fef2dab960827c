# frozen_string_literal: true

require_relative "pending"
require_relative "../wire"

module Hikyaku
  module Broker
    class Client
      # A SEND or a SEND_BATCH: its messages, the number of the first one, and how far the request has got.
      #
      # After a reconnection some of its messages may need a frame of their own: a part. The request is done when each message has
      # a result.
      class SendRequest
        # Bytes of the frames beside names, properties and payload. PUSH counts, too, because it delivers the same message.
        SEND_BYTES = 40
        PUSH_BYTES = 48
        BATCH_BYTES = 44
        ITEM_BYTES = 6
        private_constant :SEND_BYTES, :PUSH_BYTES, :BATCH_BYTES, :ITEM_BYTES

        class << self
          # Bytes of a SEND_BATCH.
          def batch_bytes(queue, messages) = messages.sum(BATCH_BYTES + queue.bytesize) { |message| item_bytes(message) }

          def item_bytes(message) = message.bytesize + ITEM_BYTES
        end

        # `bytes` are those of its frame, or of the PUSH where that is longer, `offset` the messages of the whole request before this part.
        attr_reader :pending, :count, :bytes, :offset, :whole
        # `number` is that of its first message, and the id of the request; it is doubtful when an earlier client of the identity may have used it.
        # `order` is its place among all requests. It was transmitted to a connection, held for the next one by a broker that drains, or is
        # queued in the {RetransmitQueue}.
        attr_accessor :number, :order, :doubtful, :transmitted, :held, :queued

        # `fields` are kind, level, priority, delay and time_to_live of the frame.
        def initialize(pending, queue, messages, numbered: true, fields: {})
          @pending = pending
          @queue = queue
          @messages = messages
          @numbered = numbered
          @fields = fields
          @offset = 0
          @count = messages.size
          @whole = self
          @bytes = (@count == 1) ? [SEND_BYTES + queue.bytesize, PUSH_BYTES].max + messages.first.bytesize : SendRequest.batch_bytes(queue, messages)
        end

        def frame
          sequence = @numbered ? @number : 0
          return Wire.send_batch(id: @number, sequence: sequence, to: @queue, messages: items, **@fields) if batch?
          message = @messages.first
          Wire.send_message(id: @number, sequence: sequence, to: @queue, payload: message.payload, properties: message.packed, **@fields)
        end

        # A request that is sent in place of some of the messages.
        def part(from, count)
          @whole.transmitted = true
          dup.become_part(from, count)
        end

        # Bytes of the payload where it is one message, for an error.
        def payload_bytes = batch? ? nil : @messages.first.payload.bytesize

        def resolve(results)
          whole? ? complete(results) : @whole.collect(@offset, results)
        end

        # A message without a result is sent again.
        def collect(from, results)
          return @whole.collect(@offset + from, results) unless whole?
          @results ||= Array.new(@count)
          @results[from, results.size] = results
          complete(@results) if @results.all?
        end

        def fail(error)
          return @pending.fail(error) if whole?
          error.is_a?(Refused) ? @whole.collect(@offset, Array.new(@count) { error }) : @whole.fail(error)
        end

        protected

        def become_part(from, count)
          @bytes = @bytes * count / @count
          @offset += from
          @count = count
          @number = @doubtful = @transmitted = @held = @queued = nil
          self
        end

        private

        def items = @messages[@offset, @count].map { |message| [message.packed, message.payload] }

        def batch? = @messages.size > 1

        def whole? = @whole.equal?(self)

        def complete(results)
          return if @pending.done?
          @pending.resolve(batch? ? results : results.first)
        end
      end
    end
  end
end
