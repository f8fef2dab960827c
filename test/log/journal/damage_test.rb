# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "tmpdir"
require "hikyaku/log/journal"
require "support/journal_vectors"

# Every byte is changed, and every file cut at every byte: it is repaired, or refused; never is there silently less.
class JournalDamageTest < Minitest::Test
  Journal = Hikyaku::Log::Journal

  def setup
    @folder = Dir.mktmpdir("damage")
  end

  def teardown = FileUtils.rm_rf(@folder)

  # The records that a reader gets, or nil when it is refused.
  def read
    files = Journal::Files.new(@folder)
    recovery = Journal::Recovery.new(files)
    records = []
    recovery.replay { |record| records << record.to_a.first(4) }
    records if recovery.damages.empty?
  ensure
    recovery&.close
    files&.close_folder
  end

  # Yields each change of a file of this journal, and what is read then.
  def each_change(vector, name)
    vector.write(@folder)
    path = File.join(@folder, name)
    bytes = vector.files.fetch(name)
    whole = read
    used = bytes.sub(/\0+\z/n, "").bytesize
    (0...used).each do |at|
      [1 << at % 8, 0xff].each do |bits|
        File.binwrite(path, bytes.dup.tap { |changed| changed.setbyte(at, changed.getbyte(at) ^ bits) })
        yield whole, read, "#{vector.name}: #{name}, byte #{at}"
      end
    end
    [*0..used, used + 1, bytes.bytesize / 2, bytes.bytesize - 1].uniq.each do |size|
      next if size >= bytes.bytesize
      File.binwrite(path, bytes.byteslice(0, size))
      yield whole, read, "#{vector.name}: #{name}, cut at #{size}"
    end
    File.binwrite(path, bytes)
  end

  %w[closed two_segments closed_and_opened].each do |name|
    test "a journal of which all was synced, #{name}, is whole or refused, whatever byte of a segment changes" do
      vector = JournalVectors[name]
      # Of the last batch of two_segments nothing says that it was synced.
      synced = (name == "two_segments") ? 2 : vector.records.size
      vector.files.keys.grep(/seg\z/).each do |file|
        refused = 0
        each_change(vector, file) do |whole, found, about|
          refused += 1 if found.nil?
          assert_equal whole.first(synced), found.first(synced), about if found
          assert_empty found - whole, about if found
          assert_equal found.map(&:first).sort, found.map(&:first), about if found
        end
        assert_operator refused, :>, 64, "#{name}: #{file}"
      end
    end
  end

  test "a checkpoint is whole or refused, whatever byte of it changes" do
    %w[closed dropped_says_the_checkpoint below_the_first].each do |name|
      each_change(JournalVectors[name], "checkpoint") { |_, found, about| assert_nil found, about }
    end
  end

  test "a checkpoint that is gone is missed where something else would be" do
    %w[dropped_says_the_checkpoint below_the_first].each do |name|
      vector = JournalVectors[name]
      vector.files.delete("checkpoint")
      vector.files.delete("journal-00000000000000000001.seg")
      vector.write(@folder)
      assert_nil read, name
      FileUtils.rm_f(Dir[File.join(@folder, "*")])
    end
  end

  test "a segment that is gone is missed" do
    %w[two_segments repaired_before closed_and_opened].each do |name|
      vector = JournalVectors[name]
      vector.files.keys.grep(/seg\z/).each do |file|
        vector.write(@folder)
        File.unlink(File.join(@folder, file))
        assert_nil read, "#{name} without #{file}"
      end
    end
  end

  test "bytes at random are refused, or read as what they are" do
    random = Random.new(3)
    vector = JournalVectors["closed"]
    name = "journal-00000000000000000001.seg"
    300.times do |i|
      vector.write(@folder)
      size = 1 + random.rand(80)
      at = random.rand(700)
      File.binwrite(File.join(@folder, name), vector.files[name].dup.tap { |bytes| bytes[at, size] = random.bytes(size) })
      found = read
      assert_equal vector.records.map(&:last), found.map(&:last), i if found
    end
  end

  # Counts reads.
  class CountedFiles < Journal::Files
    # @return [Integer]
    def reads = @reads.to_i

    def read(...) = super.tap { @reads = reads + 1 }
  end
  private_constant :CountedFiles

  test "a damaged body of heads of long records is not read once for each, and what is whole behind it is kept" do
    long, heads = 1_500_000, 4_000
    # As whoever sends the body may make it, with a position that may come.
    head = [long, 0, 9, 32, 0, 0, long ^ 0xffffffff].pack("L<L<Q<CCS<L<")
    journal = Journal.open(@folder, segment_bytes: 4 << 20)
    journal.append(32, 0, (head * heads).ljust(1 << 20, "\0"))
    journal.append(32, 0, "whole")
    journal.write
    journal.abandon
    path = Dir["#{@folder}/*.seg"].max
    bytes = File.binread(path)
    at = bytes.index(head) - 20
    bytes.setbyte(at, bytes.getbyte(at) ^ 1)
    File.binwrite(path, bytes)
    kept = []
    files = CountedFiles.new(@folder)
    Journal.open(@folder, segment_bytes: 4 << 20, files: files) { |record| kept << record.body }.abandon
    assert_equal ["whole"], kept
    assert_operator files.reads, :<, heads / 2
  end
end
