# frozen_string_literal: true

module Hikyaku
  module Broker
    class RubyEngine
      # What is remembered of an identity: its epoch, and which of its numbered messages were taken.
      #
      #     numbers   … low │ low + 1 … low + 4,096
      #                all  │ those in `above`
      class Producer
        # How far above `low` a number may be.
        MOST = 4096

        # @return [Integer] in the journal
        attr_reader :number
        # @return [String] binary
        attr_reader :identity
        # @return [Integer] up to which all are settled
        attr_reader :low
        # @return [Integer] of its newest connection
        attr_accessor :epoch
        # @return [Integer, nil] in the timetable of those that were not seen for long
        attr_accessor :idle_slot
        # @return [Float] since when it is not connected
        attr_accessor :idle_since
        # @return [Boolean] it has numbered a message: it counts, and stays when its connection ends
        attr_accessor :remembered
        # @return [Boolean] the journal knows it: each segment repeats it
        attr_accessor :recorded
        # @return [Integer, nil] the newest segment that says all of it
        attr_accessor :segment

        # @param number [Integer]
        # @param identity [String]
        # @param epoch [Integer]
        # @param low [Integer]
        # @param map [String] as in the journal
        def initialize(number, identity, epoch: 0, low: 0, map: "")
          @number = number
          @identity = identity
          @epoch = epoch
          @low = @newest = low
          @above = {}
          @volatile = {}
          map.unpack1("b*").each_char.with_index(1) { |bit, offset| take(low + offset) if bit == "1" }
        end

        # @return [Boolean] one of its numbers was taken
        def numbered? = @low > 0 || !@above.empty?

        # @param sequence [Integer]
        # @return [Boolean]
        def taken?(sequence) = sequence <= @low || @above.key?(sequence)

        # @param sequence [Integer] which was taken
        # @return [Boolean] its message was one of level memory, as far as that is known
        def volatile?(sequence) = @volatile.key?(sequence)

        # @param sequence [Integer]
        # @return [Boolean]
        def ahead?(sequence) = sequence > @low + MOST

        # @param sequence [Integer] which was not taken
        # @param volatile [Boolean] the message is in memory alone: so is what is known of it
        # @return [void]
        def take(sequence, volatile: false)
          skip_to(sequence - MOST) if ahead?(sequence)
          @newest = sequence if sequence > @newest
          remember_volatile(sequence) if volatile
          if sequence == @low + 1
            @low = sequence
            rise
          elsif sequence > @low
            @above[sequence] = true
          end
        end

        # What a restart is to find. Numbers of messages in memory alone are left out, as long as they may be used again: no
        # client has more without an answer than the map holds.
        #
        # @param all [Boolean] those, too: their messages are written down
        # @return [Array(Integer, String)] low and map
        def snapshot(all: false)
          missing = all ? {} : @volatile.select { |sequence, _| sequence > @newest - MOST }
          low = [@low, *(missing.keys.min&.- 1)].min
          map = []
          [*(low + 1..@low), *@above.keys].each do |sequence|
            next if missing.key?(sequence)
            byte, bit = (sequence - low - 1).divmod(8)
            map[byte] = (map[byte] || 0) | 1 << bit
          end
          [low, map.map(&:to_i).pack("C*")]
        end

        private

        def rise
          @low += 1 while @above.delete(@low + 1)
        end

        # In a journal only: what lies between was in memory alone, and answered long ago.
        def skip_to(low)
          @above.delete_if { |sequence, _| sequence <= low }
          @low = low
          rise
        end

        def remember_volatile(sequence)
          @volatile[sequence] = true
          @volatile.delete(@volatile.first.first) if @volatile.size > 2 * MOST
        end
      end
    end
  end
end
