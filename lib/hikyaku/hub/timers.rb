# frozen_string_literal: true

module Hikyaku
  class Hub
    # Timers that expire in slots: to add or cancel one is a hash look-up (a new slot: an insertion into a sorted list), and `expire`
    # costs what is due. A timer never expires late: it is filed under the beginning of its slot. Time is an argument, in seconds.
    class Timers
      def initialize(granularity: 1.0)
        @granularity = granularity
        @slots = {}
        @order = []
      end

      def add(at, entry)
        slot = slot_of(at)
        entries = @slots[slot] ||= new_slot(slot)
        entries[entry] = true
        slot
      end

      def cancel(slot, entry)
        entries = @slots[slot] or return
        entries.delete(entry)
        return unless entries.empty?
        @slots.delete(slot)
        @order.delete_at(@order.bsearch_index { |other| other >= slot })
      end

      def slot_of(at) = (at / @granularity).floor

      def next_at = @order.empty? ? nil : @order.first * @granularity

      def expire(now)
        while @order.any? && @order.first * @granularity <= now
          @slots.delete(@order.shift).each_key { |entry| yield entry }
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
