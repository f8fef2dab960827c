# frozen_string_literal: true

module Hikyaku
  module Broker
    class RubyEngine
      # Things by number, the smallest first. Adding and taking cost O(log n).
      class Heap
        def initialize
          @keys = []
          @things = []
        end

        # @return [Integer]
        def size = @keys.size

        # @return [Boolean]
        def empty? = @keys.empty?

        # @return [Integer, nil] the smallest number
        def first_key = @keys.first

        # @return [Object, nil] what has the smallest number
        def first = @things.first

        # @param key [Integer]
        # @param thing [Object]
        # @return [void]
        def push(key, thing)
          at = @keys.size
          while at > 0 && @keys[parent = (at - 1) >> 1] > key
            @keys[at] = @keys[parent]
            @things[at] = @things[parent]
            at = parent
          end
          @keys[at] = key
          @things[at] = thing
        end

        # Takes the first away.
        #
        # @return [Object, nil]
        def shift
          return if @keys.empty?
          first = @things.first
          key = @keys.pop
          thing = @things.pop
          sink(key, thing) unless @keys.empty?
          first
        end

        # @yieldparam thing [Object]
        # @return [void]
        def each(&block) = @things.each(&block)

        # Takes away what the block does not want. O(n).
        #
        # @yieldparam thing [Object]
        # @return [void]
        def keep
          pairs = @keys.zip(@things).select { |_, thing| yield thing }.sort_by!(&:first)
          @keys = pairs.map(&:first)
          @things = pairs.map(&:last)
        end

        private

        def sink(key, thing)
          at = 0
          size = @keys.size
          while (child = 2 * at + 1) < size
            child += 1 if child + 1 < size && @keys[child + 1] < @keys[child]
            break if @keys[child] >= key
            @keys[at] = @keys[child]
            @things[at] = @things[child]
            at = child
          end
          @keys[at] = key
          @things[at] = thing
        end
      end
    end
  end
end
