# frozen_string_literal: true

require "hikyaku/log/journal"

module CrashSimulation
  # Writes to a journal at random, remembers what was appended, and checks after a crash that all of it is there which the journal had
  # acknowledged. See RecordingFiles#note.
  class Workload
    Journal = Hikyaku::Log::Journal
    SEGMENT_BYTES = Journal::Format::SEGMENT_LEAST
    SIZES = [0, 1, 7, 8, 60, 100, 500, 1_000, 5_000, 20_000].freeze
    private_constant :SIZES

    # What has to be there after a crash.
    Promise = Struct.new(:position, :dropped)
    Appended = Struct.new(:type, :flags, :body, :segment)

    # Everything that was ever appended, by position.
    attr_reader :appended

    def initialize(random)
      @random = random
      @appended = {}
    end

    # Opens the journal and works.
    def work(files, turns:, close: false)
      journal = Journal.open(files.path, segment_bytes: SEGMENT_BYTES, files: files, on_begin: method(:append))
      files.note([:synced, journal.synced])
      turns.times { turn(journal, files) }
      journal.close if close
    ensure
      journal&.abandon
    end

    # The promise that was made by these notes, of level :synced, or :written where a process was killed and the power did not fail.
    def promise(notes, level: :synced)
      Promise.new(notes.filter_map { |kind, position| position if kind == level }.max || 0, notes.filter_map { |kind, number| number if kind == :drop })
    end

    # Opens a journal after a crash, and returns what is wrong with it, or nil.
    def complaint(files, promise)
      found = {}
      journal = Journal.open(files.path, segment_bytes: SEGMENT_BYTES, files: files) { |record| found[record.position] = record }
      journal.abandon
      missing = @appended.find { |position, record| position <= promise.position && !found.key?(position) && !promise.dropped.include?(record.segment) }
      return "position #{missing.first} was acknowledged, and is not there" if missing
      other = found.find { |position, record| @appended[position].to_a.first(3) != [record.type, record.flags, record.body] }
      "position #{other.first} is not what was appended" if other
    rescue Hikyaku::Error => error
      error.message
    end

    # Forgets what was appended behind this position: the crash has taken it.
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
      type = Journal::Format::TYPES.first + @random.rand(Journal::Format::TYPES.size)
      body = @random.bytes(SIZES.sample(random: @random))
      flags = @random.rand(256)
      urgent = @random.rand(4) == 0
      @appended[journal.append(type, flags, body, urgent: urgent)] = Appended.new(type, flags, body, journal.place >> 32)
    rescue Journal::Full
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
