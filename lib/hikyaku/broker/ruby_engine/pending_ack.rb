# frozen_string_literal: true

require_relative "../wire/type"

module Hikyaku
  module Broker
    class RubyEngine
      # An ACK that waits for its level, of one request or of SENDs in a row.
      class PendingAck
        # Bytes of an ACK, and of each refusal in it.
        BYTES = 32
        REFUSAL_BYTES = 12
        RANGE = 1
        DUPLICATE = 2
        private_constant :RANGE, :DUPLICATE

        attr_reader :session, :level, :messages, :bytes
        # Position in the journal that has to be written or synced before.
        attr_accessor :position

        # Without keywords, which would cost every message a Hash.
        def initialize(session, request, id, level, count, value, messages, bytes)
          @session = session
          @request = request
          @id = @last = id
          @level = @reached = level
          @count = count
          @value = value
          @messages = messages
          @bytes = bytes
          @duplicate = false
          @refusals = nil
        end

        # `reached` is the level that holds for all messages where it is lower than the one waited for; a refusal is an index, a code
        # and milliseconds.
        def add(reached: nil, duplicate: false, refusals: nil)
          @reached = reached if reached
          @duplicate = duplicate
          @refusals = refusals
          self
        end

        # Takes one more SEND in, if it follows.
        def extend_by(id, level, value, bytes)
          return false unless id == @last + 1 && level == @level && value == @value + (id - @id) && @request == Wire::Type::SEND && !@duplicate
          @last = id
          @messages += 1
          @bytes += bytes
          true
        end

        def to_frame
          flags = (@last == @id) ? 0 : RANGE
          flags |= DUPLICATE if @duplicate
          size = BYTES + ((@last == @id) ? 0 : 8) + (@refusals ? REFUSAL_BYTES * @refusals.size : 0)
          bytes = [size, Wire::Type::ACK, flags, 0, @id, @request, @reached, @refusals ? @refusals.size : 0, @count, @value].pack("VCCvQ<CCvVQ<")
          bytes << [@last].pack("Q<") unless @last == @id
          @refusals&.each { |index, code, retry_after| bytes << [index, code, 0, retry_after].pack("VvvV") }
          bytes
        end
      end
    end
  end
end
