# frozen_string_literal: true

module Hikyaku
  module Broker
    class RubyEngine
      # Things by number, the smallest first. Adding and removing cost O(log n).
      class Heap
        def initialize
          @keys = []
          @things = []
        end

        def size = @keys.size

        def empty? = @keys.empty?

        def first_key = @keys.first

        def first = @things.first

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

        # Removes the first.
        def shift
          return if @keys.empty?
          first = @things.first
          key = @keys.pop
          thing = @things.pop
          sink(key, thing) unless @keys.empty?
          first
        end

        def each(&block) = @things.each(&block)

        # Removes the things for which the block is false. O(n).
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
