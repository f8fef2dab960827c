# frozen_string_literal: true

module Hikyaku
  module Broker
    class RubyEngine
      # What the broker remembers of an identity: its epoch, and which of its numbered messages were taken.
      #
      #     numbers   … low │ low + 1 … low + 4,096
      #                all  │ those in `above`
      class Producer
        # How far above `low` a number may be.
        WINDOW = 4096

        # In the journal.
        attr_reader :number
        attr_reader :identity
        # The number up to which all were taken.
        attr_reader :low
        # Of its newest connection.
        attr_accessor :epoch
        attr_accessor :idle_timer
        # Seconds of the engine's clock since which it is not connected.
        attr_accessor :idle_since
        # Whether it has numbered a message: it counts, and stays when its connection ends.
        attr_accessor :remembered
        # Whether the journal knows it, and the newest segment with all of it.
        attr_accessor :recorded, :segment

        # `map` is a bit for each number above `low`, as the journal has it.
        def initialize(number, identity, epoch: 0, low: 0, map: "")
          @number = number
          @identity = identity
          @epoch = epoch
          @low = @newest = low
          @above = {}
          @volatile = {}
          map.unpack1("b*").each_char.with_index(1) { |bit, offset| take(low + offset) if bit == "1" }
        end

        def numbered? = @low > 0 || !@above.empty?

        def taken?(sequence) = sequence <= @low || @above.key?(sequence)

        # Whether a number that was taken belongs to a message of level memory, as far as that is known.
        def volatile?(sequence) = @volatile.key?(sequence)

        def ahead?(sequence) = sequence > @low + WINDOW

        # Takes a number. `volatile`: its message is in memory alone, and so is the knowledge of it.
        def take(sequence, volatile: false)
          skip_to(sequence - WINDOW) if ahead?(sequence)
          @newest = sequence if sequence > @newest
          remember_volatile(sequence) if volatile
          if sequence == @low + 1
            @low = sequence
            rise
          elsif sequence > @low
            @above[sequence] = true
          end
        end

        # `low` and `map` for the journal. Numbers of messages in memory alone are left out as long as they may be sent again: no client
        # has more without an answer than the map holds. `all` takes them in: their messages are written, too.
        def snapshot(all: false)
          missing = all ? {} : @volatile.select { |sequence, _| sequence > @newest - WINDOW }
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

        # Happens in a journal only: the numbers between were in memory alone, and answered long ago.
        def skip_to(low)
          @above.delete_if { |sequence, _| sequence <= low }
          @low = low
          rise
        end

        def remember_volatile(sequence)
          @volatile[sequence] = true
          @volatile.delete(@volatile.first.first) if @volatile.size > 2 * WINDOW
        end
      end
    end
  end
end
