# frozen_string_literal: true

require_relative "heap"

module Hikyaku
  module Broker
    class RubyEngine
      # Things to look at when their time has come, filed by slots of 16 ms. Adding and cancelling cost a look-up; a thing never
      # comes early, and a slot late at most. Time is seconds of a clock that only goes forward.
      class Timetable
        # Seconds.
        SLOT = 0.016
        # Slots without things that are let be before the order is made anew.
        STALE = 64
        private_constant :STALE

        # @param slot [Integer] what `add` returned
        # @return [Float] when it is over
        def self.end_of(slot) = slot * SLOT

        def initialize
          @slots = {}
          @order = Heap.new
          @stale = 0
        end

        # @param at [Float] seconds
        # @param thing [Object]
        # @return [Integer] the slot, to cancel with
        def add(at, thing)
          slot = (at / SLOT).ceil
          things = @slots[slot]
          unless things
            things = @slots[slot] = {}.compare_by_identity
            @order.push(slot, slot)
          end
          things[thing] = true
          slot
        end

        # @param slot [Integer, nil] what `add` returned
        # @param thing [Object]
        # @return [nil]
        def cancel(slot, thing)
          things = slot && @slots[slot] or return
          things.delete(thing)
          return unless things.empty?
          @slots.delete(slot)
          @stale += 1
          tidy if @stale > STALE && @stale * 2 > @order.size
          nil
        end

        # @return [Float, nil] when the next slot is over
        def next_at
          return if @slots.empty?
          @order.shift until @slots.key?(@order.first_key)
          @order.first_key * SLOT
        end

        # Takes out and yields what is due.
        #
        # @param now [Float] seconds
        # @param most [Integer] how many; what is due beyond that comes the next time
        # @yieldparam thing [Object]
        # @return [void]
        def expire(now, most: Float::INFINITY)
          while (at = next_at) && at <= now && most > 0
            things = @slots[@order.first_key]
            due = (things.size <= most) ? @slots.delete(@order.shift).keys : things.first(most).map(&:first)
            most -= due.size
            due.each do |thing|
              things.delete(thing)
              yield thing
            end
          end
        end

        private

        def tidy
          @order.keep { |slot| @slots.key?(slot) }
          @stale = 0
        end
      end
    end
  end
end
