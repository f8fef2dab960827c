# frozen_string_literal: true

require_relative "heap"

module Hikyaku
  module Broker
    class RubyEngine
      # Timers in slots of 16 ms. Adding and cancelling cost a look-up. A timer never fires early, and at most a slot late. Time is seconds
      # of a clock that only goes forward.
      class TimerWheel
        # Seconds.
        SLOT = 0.016
        # Empty slots that are kept before the order is made anew.
        STALE = 64
        private_constant :STALE

        # Seconds at which a slot is over.
        def self.end_of(slot) = slot * SLOT

        def initialize
          @slots = {}
          @order = Heap.new
          @stale = 0
        end

        # Returns the slot, to cancel with.
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

        def cancel(slot, thing)
          things = slot && @slots[slot] or return
          things.delete(thing)
          return unless things.empty?
          @slots.delete(slot)
          @stale += 1
          tidy if @stale > STALE && @stale * 2 > @order.size
          nil
        end

        # Seconds at which the next slot is over.
        def next_at
          return if @slots.empty?
          @order.shift until @slots.key?(@order.first_key)
          @order.first_key * SLOT
        end

        # Removes and yields what is due, `most` at a time.
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
