# frozen_string_literal: true

require_relative "../../support/clock"
require_relative "errors"
require_relative "format"

module Hikyaku
  module Log
    class Journal
      # How far the reading of a journal is, for those who wait for it: a line when there is much to read, one every few seconds,
      # and one at the end. Of either engine: the one in C calls `read` as well.
      #
      # While it goes on Interrupted may be raised in its thread by those who want it to end, and is let in here alone:
      #
      #     Thread.handle_interrupt(Interrupted => :never) { … Journal.open … }
      class Reading
        # Bytes from which on it is said that there is something to read.
        MUCH = 64 * 1024 * 1024
        # Seconds between two lines.
        PAUSE = 5
        private_constant :MUCH, :PAUSE

        # Tells of what the block reads.
        def self.of(folder, report)
          reading = new(folder, report: report)
          reading.begin
          yield(reading).tap { reading.end }
        end

        def initialize(folder, report:, clock: Support::Clock::MONOTONIC)
          @folder = folder
          @report = report
          @clock = clock
          @bytes = @records = 0
        end

        def begin
          @began = @clock.call
          @due = @began + PAUSE
          found = sizes
          @total = 2 * found.sum # once to verify them, once to take them
          say("reading the journal in #{@folder}: #{found.sum} bytes in #{found.size} segments") if found.sum >= MUCH
        end

        # So much more was read.
        def read(bytes, records)
          @bytes += bytes
          @records += records
          say("reading the journal in #{@folder}: #{share} % is done") if @clock.call >= @due
          Thread.handle_interrupt(Interrupted => :immediate) { nil }
        end

        # A record was taken.
        def record = @records += 1

        def end
          say("the journal in #{@folder} was read: #{@records} records in #{(@clock.call - @began).round(1)} s") if @said
        end

        private

        # Not all of it is read, where segments were dropped or a record does not verify.
        def share = @total.zero? ? 99 : (100 * @bytes / @total).clamp(0, 99)

        def say(sentence)
          @due = @clock.call + PAUSE
          @said = true
          @report&.call(:info, sentence)
        end

        def sizes
          Dir.children(@folder).filter_map { |name| File.size(File.join(@folder, name)) if Format.segment_number(name) }
        rescue SystemCallError
          [] # whoever opens it says what is wrong
        end
      end
    end
  end
end
