# frozen_string_literal: true

require_relative "../journal"

module Hikyaku
  module Log
    class Journal
      # A log that does nothing but to see whether a journal keeps its promises: it appends, drops, and remembers what was
      # acknowledged. What it is told by notes (see Trace#note) it checks after a crash.
      class Rehearsal
        SEGMENT_BYTES = Format::SEGMENT_LEAST
        SIZES = [0, 1, 7, 8, 60, 100, 500, 1_000, 5_000, 20_000].freeze
        private_constant :SIZES

        # What is to be found after a crash.
        Promise = Struct.new(:position, :dropped)
        # One record: all that was appended, and where.
        Appended = Struct.new(:type, :flags, :body, :segment)

        # @return [Hash{Integer => Appended}] all that was ever appended, by position
        attr_reader :appended

        # @param random [Random]
        def initialize(random)
          @random = random
          @appended = {}
        end

        # Opens the journal and works.
        #
        # @param files [Trace]
        # @param turns [Integer]
        # @param close [Boolean] whether it ends in order
        # @return [void]
        def work(files, turns:, close: false)
          journal = Journal.open(files.path, segment_bytes: SEGMENT_BYTES, files: files, on_begin: method(:append))
          files.note([:synced, journal.synced])
          turns.times { turn(journal, files) }
          journal.close if close
        ensure
          journal&.abandon
        end

        # @param notes [Array<Array>]
        # @param level [Symbol] :synced; or :written, when a process was killed and the power did not fail
        # @return [Promise]
        def promise(notes, level: :synced)
          Promise.new(notes.filter_map { |kind, position| position if kind == level }.max || 0, notes.filter_map { |kind, number| number if kind == :drop })
        end

        # Opens a journal after a crash.
        #
        # @param files [Files]
        # @param promise [Promise]
        # @return [String, nil] what is wrong
        def complaint(files, promise)
          found = {}
          journal = Journal.open(files.path, segment_bytes: SEGMENT_BYTES, files: files) { |record| found[record.position] = record }
          journal.abandon
          missing = @appended.find { |position, record| position <= promise.position && !found.key?(position) && !promise.dropped.include?(record.segment) }
          return "position #{missing.first} was acknowledged, and is not there" if missing
          other = found.find { |position, record| @appended[position].to_a.first(3) != [record.type, record.flags, record.body] }
          "position #{other.first} is not what was appended" if other
        rescue Error => error
          error.message
        end

        # What was appended behind this position never was.
        #
        # @param position [Integer]
        # @return [void]
        def forget_after(position) = @appended.delete_if { |other, _| other > position }

        private

        def turn(journal, files)
          @random.rand(4).times { append(journal) }
          if @random.rand(3) > 0
            journal.write
            files.note([:written, journal.written])
          end
          if @random.rand(3) == 0
            journal.sync
            files.note([:synced, journal.synced])
          end
          journal.make_space if @random.rand(3) == 0
          drop(journal, files) if @random.rand(20) == 0
        end

        def append(journal)
          type = Format::TYPES.first + @random.rand(Format::TYPES.size)
          body = @random.bytes(SIZES.sample(random: @random))
          flags = @random.rand(256)
          urgent = @random.rand(4) == 0
          @appended[journal.append(type, flags, body, urgent: urgent)] = Appended.new(type, flags, body, journal.place >> 32)
        rescue Full
          journal.retry if @random.rand(4) == 0
        end

        def drop(journal, files)
          return if journal.oldest == journal.current
          number = journal.oldest + @random.rand(journal.current - journal.oldest)
          files.note([:drop, number])
          journal.drop(number)
        end
      end
    end
  end
end
