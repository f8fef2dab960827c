# frozen_string_literal: true

require "test_helper"
require "support/crashes"
require "support/failing_files"

# Every system call fails once, each in a run of its own.
class JournalFailuresTest < Minitest::Test
  include Crashes

  SEED = 5
  TURNS = 30

  # What a run before has left, so that there is something to read.
  def before
    @before ||= begin
      calls, workload = rehearse(SEED, turns: 12)
      cut = CrashSimulation::PowerCut.new
      calls.each { |call| cut.apply(call) }
      [cut.whole, workload, notes(calls)]
    end
  end

  def run_with(files)
    workload = CrashSimulation::Workload.new(Random.new(SEED + 1))
    workload.appended.merge!(before[1].appended)
    workload.work(files, turns: TURNS, close: true)
    [workload, nil]
  rescue Hikyaku::Error => error
    [workload, error]
  end

  # Runs with the n-th call failing, for every n there is; yields what became of it.
  def each_failure(**options)
    files, _, said = before
    total = folder(files) { |path| FailingFiles.new(path, **options).tap { |counting| run_with(counting) }.count }
    assert_operator total, :>, 0
    (1..total).each do |at|
      folder(files) do |path|
        failing = FailingFiles.new(path, at: at, **options)
        workload, error = run_with(failing)
        about = "#{failing.failed}, call #{at} of #{total}"
        yield path, failing, error, about
        assert_nil workload.complaint(Journal::Files.new(path), workload.promise(said + notes(failing.calls), level: :written)), "#{about}: killed"
        @left = CrashSimulation::PowerCut.new(files).tap { |cut| failing.calls.each { |call| cut.apply(call) } }.files(Random.new(at))
        @checked = [workload, said + notes(failing.calls), about]
      end
      workload, known, about = @checked
      assert_nil complaint(@left, workload, known), "#{about}: power cut"
    end
  end

  %i[list create open size read write sync_data sync sync_folder rename unlink].each do |call|
    test "when #{call} fails, it is said, nothing is acknowledged any more, and what was is there" do
      each_failure(only: [call], error: Errno::EIO) do |path, _, error, about|
        assert_kind_of Journal::Failed, error, about
        [path, "Input/output error", "start again"].each { |part| assert_includes error.message, part }
        assert_kind_of Errno::EIO, error.error
      end
    end
  end

  test "a write that writes less than it was given is gone on with" do
    each_failure(only: [:write], error: :short) { |_, _, error, about| assert_nil error, about }
  end

  test "a write that writes nothing is a failure, not an endless loop" do
    folder do |path|
      files = FailingFiles.new(path)
      journal = Journal.open(path, segment_bytes: 65_536, files: files)
      files.define_singleton_method(:write) { |*| 0 }
      journal.append(32, 0, "never")
      assert_kind_of Errno::EIO, assert_raises(Journal::Failed) { journal.write }.error
      journal.abandon
    end
  end

  [Errno::ENOSPC, Errno::EDQUOT, Errno::EMFILE, Errno::ENFILE].each do |error|
    test "no room (#{error.name}) for a segment or a checkpoint is no failure, but for a record it is" do
      outcomes = Hash.new(0)
      each_failure(only: %i[create write sync], error: error) do |_, files, raised, about|
        assert_includes [NilClass, Journal::Failed, Journal::Full], raised.class, about
        outcomes[[files.failed, raised.class]] += 1
      end
      assert_operator outcomes[[:create, NilClass]], :>, 2, "a spare, and a checkpoint"
      assert_equal 0, outcomes[[:create, Journal::Full]], "the segment that it begins with: it goes on in the newest"
      assert_equal 0, outcomes[[:create, Journal::Failed]]
      assert_operator outcomes[[:write, Journal::Failed]], :>, 5
    end
  end

  spares = {create: [Errno::ENOSPC, Errno::EDQUOT, Errno::EMFILE, Errno::ENFILE], write: [Errno::ENOSPC, Errno::EDQUOT], sync: [Errno::ENOSPC, Errno::EDQUOT]}
  spares.flat_map { |step, errors| [step].product(errors) }.each do |step, error|
    test "when #{step} of a spare says #{error.name}, the journal is full until it does not" do
      folder do |path|
        files = FailingFiles.new(path, only: [step], error: error, always: true)
        journal = Journal.open(path, segment_bytes: 65_536, files: files)
        # Only spares and checkpoints are made here.
        space = lambda do |at|
          files.instance_variable_set(:@at, at)
          journal.make_space
        ensure
          files.mend
        end
        fill = lambda do |most|
          most.times do
            journal.append(32, 0, "b" * 1000)
            2.times { journal.write && journal.sync }
          end
        end
        fill.call(40)
        space.call(1)
        refute journal.trouble
        assert_kind_of Journal::Full, assert_raises(Hikyaku::Error) { loop { fill.call(200).then { space.call(1) } } }
        assert journal.full?
        journal.append(33, 0, "urgent", urgent: true)
        journal.retry
        space.call(nil)
        refute journal.full?
        fill.call(5)
        journal.close
        assert_empty Dir.children(path).grep(/tmp/)
      end
    end
  end

  test "zeros that are not written are a failure, not an endless loop" do
    folder do |path|
      files = FailingFiles.new(path)
      files.define_singleton_method(:write) { |*| 0 }
      assert_kind_of Errno::EIO, assert_raises(Journal::Failed) { Journal.open(path, segment_bytes: 65_536, files: files) }.error
    end
  end

  test "a failed sync is final: the next one does not hide it" do
    folder do |path|
      files = FailingFiles.new(path, only: [:sync_data])
      journal = Journal.open(path, segment_bytes: 65_536, files: files)
      journal.append(32, 0, "one")
      journal.write
      files.define_singleton_method(:sync_data) { |_| raise Errno::EIO }
      first = assert_raises(Journal::Failed) { journal.sync }
      files.singleton_class.remove_method(:sync_data)
      %i[sync write make_space].each { |call| assert_same first, assert_raises(Journal::Failed) { journal.public_send(call) } }
      assert_same first, assert_raises(Journal::Failed) { journal.append(32, 0, "two") }
      assert_equal [0, first], [journal.synced, journal.trouble]
      refute journal.sync_wanted?
      assert_same first, assert_raises(Journal::Failed) { journal.close }
      Journal.open(path).abandon
    end
  end

  test "on a full disk bulk is refused, what frees is taken, and drops make room again" do
    folder do |path|
      files = FailingFiles.new(path, at: 1, only: [:create], error: Errno::ENOSPC, always: true)
      files.mend
      journal = Journal.open(path, segment_bytes: 65_536, files: files)
      files.instance_variable_set(:@at, 1)
      accepted = 0
      error = assert_raises(Journal::Full) { 1000.times { accepted = journal.append(32, 0, "b" * 1000) } }
      assert_includes error.message, path
      assert journal.full?
      assert_equal 0, journal.remaining
      assert_operator accepted, :>, 50
      urgent = 0
      assert_raises(Journal::Full) { 2000.times { urgent += 1 if journal.append(33, 0, "f" * 100, urgent: true) } }
      assert_operator urgent, :>, 400, "a whole segment is kept for what frees"
      assert_raises(Journal::Full) { journal.append(32, 0, "") }
      3.times { journal.write && journal.sync }
      journal.make_space
      assert journal.full?
      assert journal.drop(1)
      3.times { journal.write && journal.sync }
      files.mend
      journal.make_space
      refute journal.full?
      assert_operator journal.append(32, 0, "b" * 1000), :>, accepted + urgent
      journal.close
      left = 0
      Journal.open(path) { left += 1 }.abandon
      assert_operator left, :>, 400
    end
  end

  test "a full journal is opened again and again, with all that it holds, whether it was closed or killed" do
    folder do |path|
      full = -> { FailingFiles.new(path, at: 1, only: [:create], error: Errno::ENOSPC, always: true) }
      journal = Journal.open(path, segment_bytes: 65_536)
      bodies = Array.new(80) { |i| i.to_s.ljust(1000, "b") }
      bodies.each { |body| journal.append(32, 0, body) && journal.write && journal.sync }
      journal.abandon
      begun = 0
      12.times do |turn|
        found = []
        journal = Journal.open(path, segment_bytes: 65_536, files: full.call, on_begin: ->(log) { log.append(39, 0, "begun #{begun += 1}") }) { |record| found << record.body }
        assert_equal bodies, found, "start #{turn}"
        assert journal.full?
        assert_equal [0, 2], [journal.remaining, journal.current]
        assert_raises(Journal::Full) { journal.append(32, 0, "bulk") }
        journal.append(33, 0, "urgent #{turn}", urgent: true)
        journal.write
        journal.sync
        assert_equal journal.appended, journal.synced
        bodies << "begun #{begun}" << "urgent #{turn}"
        turn.even? ? journal.close : journal.abandon
      end
      journal = Journal.open(path, segment_bytes: 65_536, files: full.call, on_begin: ->(log) { log.append(39, 0, "b" * 4_000) })
      error = assert_raises(Hikyaku::Error) { journal.append(32, 0, "b" * 65_000) }
      assert_kind_of Hikyaku::LimitExceeded, error, "it is too large, wherever it would stand"
      assert_raises(Journal::Full) { journal.append(32, 0, "b" * 60_000) }
      assert_raises(Journal::Full) { 10_000.times { journal.append(33, 0, "f" * 1000, urgent: true) } }
      journal.write
      journal.abandon
      journal = Journal.open(path, segment_bytes: 65_536, files: (files = full.call), on_begin: ->(log) { log.append(39, 0, "b" * 4_000) })
      assert journal.drop(1)
      3.times { journal.write && journal.sync }
      files.mend
      journal.make_space
      refute journal.full?
      journal.append(32, 0, "bulk")
      journal.close
      left = []
      Journal.open(path) { |record| left << record.body }.abandon
      assert_equal bodies.last(24), left & bodies.last(24)
      assert_equal "bulk", left.last
    end
  end

  test "a full journal whose newest segment has no room for what the log remembers is not opened, and is whole" do
    folder do |path|
      Journal.open(path, segment_bytes: 65_536).then { |journal| journal.append(32, 0, "kept".ljust(1000)) && journal.close }
      files = FailingFiles.new(path, at: 1, only: [:create], error: Errno::ENOSPC, always: true)
      assert_raises(Journal::Full) { Journal.open(path, segment_bytes: 65_536, files: files, on_begin: ->(log) { log.append(39, 0, "b" * 65_000) }) }
      found = []
      Journal.open(path) { |record| found << record.body.rstrip }.abandon
      assert_equal ["kept"], found
    end
  end

  test "no journal is begun without room for its first segment" do
    folder do |path|
      full = -> { FailingFiles.new(path, at: 1, only: [:create], error: Errno::ENOSPC, always: true) }
      assert_raises(Journal::Full) { Journal.open(path, segment_bytes: 65_536, files: full.call) }
    end
  end

  test "a segment that says which others were dropped may be dropped itself, though no checkpoint names them yet" do
    folder do |path|
      files = FailingFiles.new(path, only: [:create])
      journal = Journal.open(path, segment_bytes: 65_536, files: files)
      turn = lambda do
        journal.append(32, 0, "x" * 20_000)
        2.times { journal.write && journal.sync }
      end
      until_segment = ->(number) { turn.call while journal.current < number }
      until_segment.call(4)
      journal.make_space
      journal.drop(2)
      turn.call
      until_segment.call(5)
      journal.drop(4)
      turn.call
      files.define_singleton_method(:create) { |_| raise Errno::EIO }
      assert_raises(Journal::Failed) { journal.make_space }
      journal.abandon
      refute_includes Dir.children(path), "journal-00000000000000000004.seg"
      segments = []
      Journal.open(path) { |record| segments << record.segment }.abandon
      assert_equal [1, 3, 5], segments.uniq
    end
  end
end
