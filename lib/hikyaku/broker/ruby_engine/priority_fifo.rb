# frozen_string_literal: true

require_relative "heap"

module Hikyaku
  module Broker
    class RubyEngine
      # The waiting messages of one queue and one priority. Those that were delivered before go first. Messages that are gone are skipped,
      # and removed when they are most of it.
      class PriorityFifo
        STALE = 64
        private_constant :STALE

        def initialize
          @fresh = []
          @back = Heap.new
          @stale = 0
        end

        def push(message) = @fresh << message

        # Adds one that was delivered before.
        def push_back(message) = @back.push(message.id, message)

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

        # Removes `first`.
        def shift = @back.empty? ? @fresh.shift : @back.shift

        # Accounts for a message that is gone and was not removed.
        def lost
          @stale += 1
          return if @stale < STALE || @stale * 2 < @fresh.size + @back.size
          @fresh.reject!(&:gone?)
          @back.keep { |message| !message.gone? }
          @stale = 0
        end

        def each
          @back.each { |message| yield message unless message.gone? }
          @fresh.each { |message| yield message unless message.gone? }
        end
      end
    end
  end
end
