# frozen_string_literal: true

require "test_helper"
require "contracts/journal_contract"
require "hikyaku/log/journal"

class JournalTest < Minitest::Test
  include JournalContract

  def open_journal(path, **options, &replay) = Hikyaku::Log::Journal.open(path, **options, &replay)

  # System calls that wait until the test lets them go on.
  class SlowFiles < Hikyaku::Log::Journal::Files
    attr_reader :waiting, :gate
    attr_accessor :slow

    def initialize(path)
      super
      @waiting = Thread::Queue.new
      @gate = Thread::Queue.new
    end

    %i[sync_data create].each do |name|
      define_method(name) do |*arguments|
        if slow == name
          @waiting << name
          @gate.pop
        end
        super(*arguments)
      end
    end
  end

  test "while a sync lasts, records are appended and written, and the next sync brings them all to the disk" do
    files = SlowFiles.new(@folder)
    journal = begin_journal(files: files)
    journal.append(32, 0, "one")
    journal.write
    files.slow = :sync_data
    thread = Thread.new { journal.sync }
    files.waiting.pop
    journal.append(32, 0, "two")
    assert_equal 2, journal.write
    assert_equal 0, journal.synced
    files.slow = nil
    files.gate << :on
    assert_equal 1, thread.value, "what was written after it began is not acknowledged"
    assert_equal 1, journal.synced
    assert_equal 2, journal.sync
  end

  test "while a segment is being made, syncs and appends go on" do
    files = SlowFiles.new(@folder)
    journal = begin_journal(files: files)
    files.slow = :create
    journal.append(32, 0, "x" * 40_000)
    journal.write
    assert journal.space_wanted?
    thread = Thread.new { journal.make_space }
    files.waiting.pop
    journal.append(32, 0, "two")
    journal.write
    assert_equal 2, journal.sync
    files.slow = nil
    files.gate << :on
    thread.join
    assert_equal 2, journal.stats.spares
  end

  test "three threads, each with its own part, lose nothing" do
    journal = begin_journal
    stop = false
    helpers = [-> { journal.sync if journal.sync_wanted? }, -> { journal.make_space if journal.space_wanted? }].map do |part|
      Thread.new do
        until stop
          part.call
          Thread.pass
        end
      end
    end
    random = Random.new(4)
    bodies = Array.new(1_500) { random.bytes(random.rand(2_000)) }
    bodies.each_with_index do |body, i|
      journal.want_sync(journal.append(32, 0, body))
      journal.write if i % 7 == 0
      journal.drop(journal.oldest) if i % 400 == 399 && journal.oldest < journal.current
    end
    while journal.synced < 1_500
      journal.write
      Thread.pass
    end
    stop = true
    helpers.each(&:join)
    reopen(journal)
    assert_equal bodies.last(@replayed.size), @replayed.map(&:body)
    assert_operator @replayed.size, :>, 500
  end

  test "figures tell what was done" do
    journal = begin_journal
    journal.append(32, 0, "12345678")
    journal.append(32, 0, "")
    synced(journal)
    stats = journal.stats
    assert_equal [2, 40 + 32 + 24, 1, 1, 1, 1, 0], [stats.records, stats.bytes, stats.batches, stats.syncs, stats.segments, stats.spares, stats.torn_repaired]
    assert_operator stats.longest_sync, :>, 0
    assert_equal 0, journal.stats.longest_sync, "since it was read"
    assert_equal 1, reopen(journal).stats.torn_repaired
  end

  test "what begins each segment and does not fit is said, and is the end" do
    error = assert_raises(Hikyaku::Log::Journal::Failed) { begin_journal(on_begin: ->(journal) { 70.times { journal.append(35, 0, "n" * 1000) } }) }
    assert_match(/does not fit into 65536 bytes; give segment_bytes a larger value/, error.message)
  end

  test "a folder that is not there is said" do
    error = assert_raises(Hikyaku::Log::Journal::Failed) { begin_journal(path: "/does/not/exist") }
    assert_match(%r{cannot open /does/not/exist: No such file.*a folder that exists}, error.message)
  end

  test "whoever replays and raises gets the journal closed, and the lock given back" do
    journal = begin_journal
    journal.append(32, 0, "poison")
    journal.write
    journal.abandon
    assert_raises(KeyError) { Hikyaku::Log::Journal.open(@folder) { raise KeyError } }
    begin_journal
    assert_equal ["poison"], @replayed.map(&:body)
  end

  test "a journal of many segments holds few files open" do
    journal = begin_journal
    fill(journal, 40)
    before = Dir.children("/proc/self/fd").size
    assert_operator before, :<, 60
    journal = reopen(journal)
    journal.reread(@replayed.first.place)
    journal.reread(@replayed.last.place)
    assert_operator Dir.children("/proc/self/fd").size, :<=, before + 2
  end

  test "inspecting it says where it is, and nothing of what it holds" do
    journal = begin_journal
    journal.append(32, 0, "secret")
    assert_equal "#<Hikyaku::Log::Journal #{@folder} appended=1 synced=0>", journal.inspect
  end
end
