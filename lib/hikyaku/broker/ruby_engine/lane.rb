# frozen_string_literal: true

require_relative "heap"

module Hikyaku
  module Broker
    class RubyEngine
      # The messages of one queue and one priority that wait: those that came back stand before those that were never delivered. What
      # is gone in the meantime is passed over, and swept out when it is the larger part.
      class Lane
        STALE = 64
        private_constant :STALE

        def initialize
          @fresh = []
          @back = Heap.new
          @stale = 0
        end

        # @param message [Message]
        # @return [void]
        def push(message) = @fresh << message

        # @param message [Message] it was delivered before
        # @return [void]
        def push_back(message) = @back.push(message.id, message)

        # @return [Message, nil]
        def first
          until @back.empty?
            return @back.first unless @back.first.gone?
            @back.shift
          end
          while (message = @fresh.first)
            return message unless message.gone?
            @fresh.shift
            @stale -= 1
          end
        end

        # Takes `first` away.
        #
        # @return [void]
        def shift = @back.empty? ? @fresh.shift : @back.shift

        # One of its messages is gone without having been taken away.
        #
        # @return [void]
        def lost
          @stale += 1
          return if @stale < STALE || @stale * 2 < @fresh.size + @back.size
          @fresh.reject!(&:gone?)
          @back.keep { |message| !message.gone? }
          @stale = 0
        end

        # @yieldparam message [Message] in no order
        # @return [void]
        def each
          @back.each { |message| yield message unless message.gone? }
          @fresh.each { |message| yield message unless message.gone? }
        end
      end
    end
  end
end
