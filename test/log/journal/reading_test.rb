# frozen_string_literal: true

require "test_helper"
require "hikyaku/log/journal"
require "tmpdir"

# What is said of the reading of a journal, and how it is ended.
class JournalReadingLinesTest < Minitest::Test
  Journal = Hikyaku::Log::Journal
  MIB = 1 << 20

  def setup
    @folder = Dir.mktmpdir("journal")
    @lines = []
    @now = 100.0
  end

  def teardown = FileUtils.rm_rf(@folder)

  test "of a large journal it is said how large it is, every few seconds how much is done, and what it was" do
    2.times { |number| segment(number + 1, 40 * MIB) }
    reading = self.reading
    reading.begin
    4.times do
      @now += 3
      reading.read(32 * MIB, 10)
    end
    2.times { reading.record }
    reading.end
    assert_equal [[:info, "reading the journal in #{@folder}: #{80 * MIB} bytes in 2 segments"],
      [:info, "reading the journal in #{@folder}: 40 % is done"], [:info, "reading the journal in #{@folder}: 80 % is done"],
      [:info, "the journal in #{@folder} was read: 42 records in 12.0 s"]], @lines
  end

  test "of a small one nothing is said, unless it takes long all the same" do
    segment(1, MIB)
    reading = self.reading
    reading.begin
    reading.read(MIB, 1)
    reading.end
    assert_empty @lines
    reading.begin
    @now += 60
    reading.read(9 * MIB, 1)
    reading.end
    assert_equal ["reading the journal in #{@folder}: 99 % is done", "the journal in #{@folder} was read: 2 records in 60.0 s"], @lines.map(&:last)
  end

  test "whoever is to end is interrupted where a journal is read, and nowhere else; the next one finds all of it" do
    journal = Journal.open(@folder, segment_bytes: 65_536)
    20.times { journal.append(32, 0, "x" * 10_000) && journal.write && journal.sync && journal.make_space }
    journal.close
    before = files
    reached = taken = false
    assert_raises(Journal::Interrupted) do
      Thread.handle_interrupt(Journal::Interrupted => :never) do
        Thread.current.raise(Journal::Interrupted)
        reached = true
        Journal.open(@folder) { taken = true }
      end
    end
    assert reached
    refute taken, "it read on"
    assert_equal before, files
    count = 0
    Journal.open(@folder) { count += 1 }.abandon
    assert_equal 20, count
  end

  private

  def reading = Journal::Reading.new(@folder, report: ->(level, sentence) { @lines << [level, sentence] }, clock: -> { @now })

  def segment(number, bytes) = File.open(File.join(@folder, Journal::Format.segment_name(number)), "wb") { |file| file.truncate(bytes) }

  def files = Dir.children(@folder).sort.to_h { |name| [name, File.binread(File.join(@folder, name))] }
end
