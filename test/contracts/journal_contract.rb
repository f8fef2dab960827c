# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require "support/journal_vectors"

# What every journal must do, whatever language it is written in. Including tests define
# `open_journal(path, segment_bytes:, on_begin:, &replay)`, which gives something with the methods of Hikyaku::Log::Journal.
module JournalContract
  # Bytes of the segments here.
  SMALL = 64 * 1024

  def setup
    super
    @folder = Dir.mktmpdir("journal")
    @journals = []
  end

  def teardown
    @journals.each(&:abandon)
    FileUtils.rm_rf(@folder)
    super
  end

  # Opens the journal of the test; what is replayed is in @replayed.
  def begin_journal(on_begin: nil, segment_bytes: SMALL, path: @folder, **options)
    @replayed = []
    open_journal(path, segment_bytes: segment_bytes, on_begin: on_begin, **options) { |record| @replayed << record }.tap { |journal| @journals << journal }
  end

  # As a crash of the process leaves it.
  def reopen(journal, **options)
    journal.abandon
    begin_journal(**options)
  end

  def synced(journal)
    journal.write
    journal.sync
  end

  # Writes so much that so many segments are begun.
  def fill(journal, segments)
    last = journal.current + segments
    while journal.current < last
      journal.append(32, 0, "f" * 5_000)
      synced(journal)
      journal.make_space if journal.space_wanted?
    end
    synced(journal)
  end

  def segment_names = Dir.children(@folder).grep(/\.seg\z/).sort

  def check_vector(vector)
    vector.write(@folder)
    return check_refused(vector) if vector.corrupt
    journal = begin_journal
    assert_equal vector.records, @replayed.map { |record| [record.position, record.type, record.flags, record.segment, record.offset, record.body] }
    assert_equal vector.opens, [journal.current, journal.appended + 1]
    journal.append(40, 1, "more")
    synced(journal)
    reopen(journal)
    assert_equal vector.records.map(&:last) + ["more"], @replayed.map(&:body), "after it was opened twice"
  end

  def check_refused(vector)
    error = assert_raises(Hikyaku::Log::Journal::Corrupt) { begin_journal }
    assert_equal vector.corrupt, [error.segment, error.offset], error.message
    [vector.corrupt.first, "offset #{vector.corrupt.last}", "hikyaku log salvage"].each { |part| assert_includes error.message, part }
    vector.files.each { |name, bytes| assert_equal bytes, File.binread(File.join(@folder, name)), name unless name.end_with?(".tmp") }
  end

  def self.included(base)
    base.extend(SentenceTests)
    base.class_eval do
      JournalVectors.all.each do |vector|
        test("the journal #{vector.name} of the vectors #{vector.corrupt ? "is refused" : "is opened"}") { check_vector(vector) }
      end

      test "what was appended comes back, in order, after it was closed and after it was killed" do
        journal = begin_journal
        appended = [[16, 0, ""], [32, 255, "\0\xFF\n".b], [63, 1, "e\u0301"], [33, 2, "x" * 40_000]]
        appended.each_with_index { |(type, flags, body), i| assert_equal i + 1, journal.append(type, flags, body) }
        journal.write
        journal = reopen(journal)
        assert_equal appended.map { |type, flags, body| [type, flags, body.b] }, @replayed.map { |record| [record.type, record.flags, record.body] }
        assert_equal [1, 2, 3, 4], @replayed.map(&:position)
        journal.close
        journal = begin_journal
        assert_equal 4, @replayed.size
        assert_equal 5, journal.append(16, 0, "next")
      end

      test "a position is appended, then written, then synced" do
        journal = begin_journal
        journal.append(32, 0, "one")
        assert_equal [1, 0, 0], [journal.appended, journal.written, journal.synced]
        assert_equal 1, journal.write
        assert_equal [1, 1, 0], [journal.appended, journal.written, journal.synced]
        refute journal.sync_wanted?
        journal.want_sync(1)
        assert journal.sync_wanted?
        assert_equal 1, journal.sync
        assert_equal [1, 1, 1], [journal.appended, journal.written, journal.synced]
        refute journal.sync_wanted?
      end

      test "what was appended and not written is not there after a crash" do
        journal = begin_journal
        journal.append(32, 0, "written")
        journal.write
        journal.append(32, 0, "not written")
        journal = reopen(journal)
        assert_equal ["written"], @replayed.map(&:body)
        assert_equal 1, journal.synced, "what was read is on the disk before anything else is acknowledged"
      end

      test "every segment begins with what the log remembers" do
        known = ["first"]
        remember = ->(journal) { known.each { |name| journal.append(35, 0, name) } }
        journal = begin_journal(on_begin: remember)
        known << "second"
        fill(journal, 2)
        reopen(journal, on_begin: remember)
        by_segment = @replayed.group_by(&:segment).transform_values { |records| records.select { |record| record.type == 35 }.map(&:body) }
        assert_equal({1 => %w[first], 2 => %w[first second], 3 => %w[first second]}, by_segment)
        assert_equal %w[first second], @replayed.select { |record| record.segment == 2 }.first(2).map(&:body), "before any other"
      end

      test "records go on in the next segment when one is full, and none crosses its end" do
        journal = begin_journal
        fill(journal, 3)
        count = journal.appended
        reopen(journal)
        assert_equal (1..count).to_a, @replayed.map(&:position)
        assert_equal [1, 2, 3, 4], @replayed.map(&:segment).uniq
        assert(@replayed.all? { |record| record.offset + 5_000 <= SMALL - 40 })
      end

      test "many segments in one turn are written by turns of write and sync" do
        journal = begin_journal
        20.times { |i| journal.append(32, 0, i.to_s * 20_000) }
        assert journal.current > 3
        turns = 0
        while journal.synced < 20
          assert (turns += 1) < 50
          journal.want_sync(20)
          journal.write
          assert journal.sync_wanted?
          journal.sync
        end
        reopen(journal)
        assert_equal (0..19).map { |i| i.to_s * 20_000 }, @replayed.map(&:body)
      end

      test "a body as large as a segment holds is kept, a larger one refused without harm" do
        journal = begin_journal
        assert_equal 1, journal.append(32, 0, "L" * (SMALL - 168))
        assert_raises(Hikyaku::LimitExceeded) { journal.append(32, 0, "L" * (SMALL - 167)) }
        assert_equal 2, journal.append(32, 0, "M" * (SMALL - 168))
        2.times { synced(journal) }
        reopen(journal)
        assert_equal ["L" * (SMALL - 168), "M" * (SMALL - 168)], @replayed.map(&:body)
      end

      test "a body that just fits behind what a segment begins with is kept, and a larger one refused though that has grown" do
        name = "n" * 100
        remember = ->(other) { other.append(35, 0, name) }
        journal = begin_journal(on_begin: remember)
        most = SMALL - 168 - 128
        journal.append(32, 0, "L" * most)
        assert_raises(Hikyaku::LimitExceeded) { journal.append(32, 0, "L" * (most + 1)) }
        name = "n" * 1000
        assert_raises(Hikyaku::LimitExceeded) { journal.append(32, 0, "L" * most) }
        journal.append(32, 0, "after")
        4.times { synced(journal) }
        reopen(journal, on_begin: remember)
        assert_equal ["L" * most, "after"], @replayed.select { |record| record.type == 32 }.map(&:body)
      end

      test "a record is read again from memory, from the segment that is written, and from an old one" do
        journal = begin_journal
        places = 30.times.map { |i| [journal.append(32, i, i.to_s * 3_000), journal.place] }
        check = lambda do |what|
          places.each do |position, place|
            record = journal.reread(place)
            assert_equal [position, 32, position - 1, (position - 1).to_s * 3_000], [record.position, record.type, record.flags, record.body], what
          end
        end
        check.call("in memory")
        journal.write
        check.call("some are written")
        4.times { synced(journal) }
        check.call("all are written")
        journal = reopen(journal)
        assert_equal places.map(&:last), @replayed.map(&:place)
        check.call("after a crash")
      end

      test "a record that is damaged on the disk is not given out" do
        journal = begin_journal
        journal.append(32, 0, "sound")
        place = journal.place
        synced(journal)
        File.write(File.join(@folder, segment_names.last), "w", place & 0xffffffff)
        error = assert_raises(Hikyaku::Log::Journal::Corrupt) { journal.reread(place) }
        assert_equal [segment_names.last, (place & 0xffffffff) - 24], [error.segment, error.offset]
      end

      test "a segment that is dropped goes when that is on the disk, and its records do not come back" do
        journal = begin_journal
        fill(journal, 3)
        in_second = nil
        assert journal.drop(2)
        refute journal.drop(2), "twice"
        refute journal.drop(99), "not there"
        assert_raises(ArgumentError) { journal.drop(journal.current) }
        journal.write
        journal.make_space
        assert_equal 4, segment_names.size, "not before it is synced"
        journal.sync
        assert journal.space_wanted?
        journal.make_space
        assert_equal 3, segment_names.size
        assert_equal [1, 4], [journal.oldest, journal.current]
        assert_equal 3 * SMALL, journal.bytes
        2.times do
          journal = reopen(journal)
          in_second = @replayed.select { |record| record.segment == 2 }
          assert_empty in_second
          assert_includes @replayed.map(&:segment), 1
        end
        assert journal.drop(1)
        synced(journal)
        journal.make_space
        journal.close
        begin_journal
        assert_equal [3, 4], @replayed.map(&:segment).uniq
      end

      test "a segment behind one that was torn is only dropped with it: it is the only witness of that" do
        journal = begin_journal
        journal.append(32, 0, "torn")
        journal.write
        journal = reopen(journal)
        fill(journal, 1)
        assert journal.drop(2)
        3.times { synced(journal) }
        journal.make_space
        assert_equal 1, journal.oldest
        assert_equal 3, segment_names.size
        journal.drop(1)
        synced(journal)
        journal.make_space
        assert_equal 1, segment_names.size
        reopen(journal)
        assert_equal [3], @replayed.map(&:segment).uniq - [4]
      end

      test "one process has a journal, and another is told so" do
        journal = begin_journal
        assert_raises(Hikyaku::Log::Journal::Locked) { begin_journal }
        journal.close
        begin_journal
      end

      test "a journal that was closed takes nothing" do
        journal = begin_journal
        journal.close
        assert_raises(Hikyaku::Log::Journal::Failed) { journal.append(32, 0, "") }
        assert_raises(Hikyaku::Log::Journal::Failed) { journal.write }
        journal.close
      end

      test "nothing is synced into a segment that was deleted" do
        journal = begin_journal
        journal.append(32, 0, "kept")
        synced(journal)
        journal.append(32, 0, "lost")
        File.unlink(File.join(@folder, segment_names.last))
        error = assert_raises(Hikyaku::Log::Journal::Failed) { synced(journal) }
        assert_match(/journal-0{19}1\.seg was deleted while it was in use/, error.message)
        assert_equal 1, journal.synced
        assert_raises(Hikyaku::Log::Journal::Failed) { journal.append(32, 0, "more", urgent: true) }
      end

      {"deleted" => ->(folder) { FileUtils.rm_rf(folder) },
       "moved" => ->(folder) { File.rename(folder, "#{folder}.away") },
       "replaced by another" => ->(folder) { File.rename(folder, "#{folder}.away") && Dir.mkdir(folder) },
       "replaced by a copy" => ->(folder) { File.rename(folder, "#{folder}.away") && FileUtils.cp_r("#{folder}.away", folder) }}.each do |what, harm|
        test "nothing is synced in a folder that was #{what}" do
          journal = begin_journal
          journal.append(32, 0, "kept")
          synced(journal)
          journal.append(32, 0, "in doubt")
          harm.call(@folder)
          error = assert_raises(Hikyaku::Log::Journal::Failed) { synced(journal) }
          assert_includes error.message, @folder
          assert_includes error.message, "while it was in use"
          assert_equal 1, journal.synced
        ensure
          FileUtils.rm_rf("#{@folder}.away")
        end
      end

      test "what is only written is not written into a deleted segment for long" do
        journal = begin_journal
        File.unlink(File.join(@folder, segment_names.last))
        deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
        assert_raises(Hikyaku::Log::Journal::Failed) do
          while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
            journal.append(32, 0, "written")
            journal.write
            sleep 0.02
          end
        end
      end

      test "a segment that is renamed back, or a link to the folder, is no harm" do
        link = "#{@folder}.link"
        File.symlink(@folder, link)
        journal = begin_journal(path: link)
        journal.append(32, 0, "one")
        synced(journal)
        File.rename(@folder, "#{@folder}.away")
        File.rename("#{@folder}.away", @folder)
        journal.append(32, 0, "two")
        synced(journal)
        assert_equal 2, journal.synced
      ensure
        File.unlink(link)
      end

      test "types of the journal's own are not the log's" do
        journal = begin_journal
        [0, 4, 15, 64, 255].each { |type| assert_raises(ArgumentError) { journal.append(type, 0, "") } }
        assert_equal 0, journal.appended
      end

      test "a journal that is closed leaves no file but its own, and none in the making" do
        journal = begin_journal
        fill(journal, 1)
        journal.close
        assert_equal ["checkpoint", *segment_names, "lock"], Dir.children(@folder).sort
      end

      test "segments of another size than those before go on" do
        journal = begin_journal
        journal.append(32, 0, "small")
        journal.close
        journal = begin_journal(segment_bytes: 2 * SMALL)
        journal.append(32, 0, "L" * SMALL)
        journal.close
        begin_journal
        assert_equal 2, @replayed.size
      end

      test "sizes that a segment cannot have are refused" do
        [0, 4096, SMALL + 1, SMALL - 4096, 2 * 1024 * 1024 * 1024].each do |size|
          error = assert_raises(Hikyaku::LimitExceeded) { begin_journal(segment_bytes: size) }
          assert_includes error.message, size.to_s
        end
      end
    end
  end
end
