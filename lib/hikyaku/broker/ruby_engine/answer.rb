# frozen_string_literal: true

require_relative "../wire/type"

module Hikyaku
  module Broker
    class RubyEngine
      # An ACK that waits for its level, of one request or of SENDs in a row.
      class Answer
        # @return [Session]
        attr_reader :session
        # @return [Integer] type of the request
        attr_reader :request
        # @return [Integer] it waits for
        attr_reader :level
        # @return [Integer, nil] what has to be synced before
        attr_accessor :position
        # @return [Integer] messages, and bytes, of the session's window
        attr_reader :messages, :bytes

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

        # What not every answer says.
        #
        # @param reached [Integer, nil] level that holds for all; nil: the one that it waits for
        # @param duplicate [Boolean] a message was taken before
        # @param refusals [Array<Array>, nil] index, code and milliseconds of each
        # @return [self]
        def add(reached: nil, duplicate: false, refusals: nil)
          @reached = reached if reached
          @duplicate = duplicate
          @refusals = refusals
          self
        end

        # Takes one more SEND in, if it follows.
        #
        # @return [Boolean]
        def extend_by(id, level, value, bytes)
          return false unless id == @last + 1 && level == @level && value == @value + (id - @id) && @request == Wire::Type::SEND && !@duplicate
          @last = id
          @messages += 1
          @bytes += bytes
          true
        end

        # @return [String]
        def to_frame
          flags = (@last == @id) ? 0 : 1
          flags |= 2 if @duplicate
          size = 32 + ((@last == @id) ? 0 : 8) + (@refusals ? 12 * @refusals.size : 0)
          bytes = [size, Wire::Type::ACK, flags, 0, @id, @request, @reached, @refusals ? @refusals.size : 0, @count, @value].pack("VCCvQ<CCvVQ<")
          bytes << [@last].pack("Q<") unless @last == @id
          @refusals&.each { |index, code, retry_after| bytes << [index, code, 0, retry_after].pack("VvvV") }
          bytes
        end
      end
    end
  end
end
