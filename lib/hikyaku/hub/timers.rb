# frozen_string_literal: true

module Hikyaku
  class Hub
    # Things to look at when their time comes, filed in slots. Adding and cancelling cost a look-up (a new slot: a place in
    # a sorted list); looking costs what is due.
    #
    # Time is an argument, in seconds; the granularity is given, and a thing never comes late: it is filed under the
    # beginning of its slot.
    class Timers
      def initialize(granularity: 1.0)
        @granularity = granularity
        @slots = {}
        @order = []
      end

      def add(at, thing)
        slot = slot_of(at)
        things = @slots[slot] ||= new_slot(slot)
        things[thing] = true
        slot
      end

      def cancel(slot, thing)
        things = @slots[slot] or return
        things.delete(thing)
        return unless things.empty?
        @slots.delete(slot)
        @order.delete_at(@order.bsearch_index { |other| other >= slot })
      end

      def slot_of(at) = (at / @granularity).floor

      def next_at = @order.empty? ? nil : @order.first * @granularity

      # Removes and yields what is due.
      def expire(now)
        while @order.any? && @order.first * @granularity <= now
          @slots.delete(@order.shift).each_key { |thing| yield thing }
        end
      end

      private

      def new_slot(slot)
        @order.insert(@order.bsearch_index { |other| other > slot } || @order.size, slot)
        {}.compare_by_identity
      end
    end
  end
end
