# frozen_string_literal: true

require "test_helper"
require "support/crashes"
require "support/failing_files"

# The power fails after every system call, and again after the journal was opened and went on.
class JournalPowerCutTest < Minitest::Test
  include Crashes

  SEED = Integer(ENV.fetch("HIKYAKU_TEST_SEED", "20261121"), 10)

  test "whatever was acknowledged as synced is there, wherever the power fails" do
    calls, workload = rehearse(SEED, turns: 110, close: true)
    assert(calls.count { |call| call.first == :rename } > 6, "segments were begun")
    assert(calls.any? { |call| call == [:unlink, "journal-00000000000000000001.seg"] }, "a segment was dropped") if SEED == 20_261_121
    random = Random.new(SEED)
    cut = CrashSimulation::PowerCut.new
    calls.each_with_index do |call, i|
      cut.apply(call)
      said = notes(calls.first(i + 1))
      assert_nil complaint(cut.files, workload, said), "seed #{SEED}, call #{i}: nothing but what was synced"
      assert_nil complaint(cut.files(random), workload, said), "seed #{SEED}, call #{i}: at random"
    end
  end

  test "whatever was acknowledged as written is there, wherever the process is killed" do
    calls, workload = rehearse(SEED + 1, turns: 40)
    cut = CrashSimulation::PowerCut.new
    calls.each_with_index do |call, i|
      cut.apply(call)
      assert_nil complaint(cut.whole, workload, notes(calls.first(i + 1)), level: :written), "call #{i}"
    end
  end

  test "a journal that was repaired is as sound as one that never crashed" do
    random = Random.new(SEED + 2)
    files = {}
    workload = CrashSimulation::Workload.new(random)
    said = []
    12.times do |round|
      calls, = rehearse(nil, turns: 15, files: files, workload: workload)
      cut = CrashSimulation::PowerCut.new(files)
      until_call = random.rand(calls.size + 1)
      calls.first(until_call).each { |call| cut.apply(call) }
      said += notes(calls.first(until_call))
      files = cut.files(random)
      assert_nil complaint(files, workload, said), "seed #{SEED + 2}, round #{round}"
      folder(files) { |path| workload.forget_after(Journal::Recovery.new(Journal::Files.new(path)).position) }
    end
  end

  test "a journal that goes on in its newest segment, because the disk is full, loses nothing in any power cut" do
    random = Random.new(SEED + 4)
    full = ->(path) { FailingFiles.new(path, at: 1, only: [:create], error: Errno::ENOSPC, always: true) }
    tried = 0
    12.times do |round|
      calls, workload = rehearse(SEED + 5 + round, turns: 12, close: round.even?)
      before = CrashSimulation::PowerCut.new.tap { |cut| calls.each { |call| cut.apply(call) } }
      files = round.even? ? before.whole : before.files(random)
      said = notes(calls)
      found = folder(files) { |path| Journal::Recovery.new(Journal::Files.new(path)) }
      next if found.newest.nil? || found.newest.ending == Journal::Format::ENDING || found.newest.offset > 30_000
      tried += 1
      workload.forget_after(found.position)
      trace = folder(files) { |path| full.call(path).tap { |failing| workload.work(failing, turns: 8) } }
      refute trace.calls.any? { |call| call.first == :rename }, "no segment was begun"
      cut = CrashSimulation::PowerCut.new(files)
      trace.calls.each_with_index do |call, i|
        cut.apply(call)
        promise = workload.promise(said + notes(trace.calls.first(i + 1)))
        [cut.files, cut.files(random), cut.whole].each do |left|
          folder(left) { |path| assert_nil workload.complaint(full.call(path), promise), "seed #{SEED}, round #{round}, call #{i}" }
        end
      end
    end
    assert_operator tried, :>, 1 if SEED == 20_261_121
  end

  test "what a process found when it began, and acknowledged, is there when the power fails after it, though nobody had synced it before" do
    random = Random.new(SEED + 3)
    workload = CrashSimulation::Workload.new(random)
    cut = CrashSimulation::PowerCut.new
    said = []
    4.times do |life|
      calls, = rehearse(nil, turns: 8, files: cut.whole, workload: workload)
      cut.restart
      calls.each_with_index do |call, i|
        cut.apply(call)
        said << call.last if call.first == :note
        [nil, random].each { |how| assert_nil complaint(cut.files(how), workload, said), "seed #{SEED + 3}, life #{life}, call #{i}" }
      end
      folder(cut.whole) { |path| workload.forget_after(Journal::Recovery.new(Journal::Files.new(path)).position) }
    end
  end

  test "a power cut tears at sectors, and what was synced is never torn" do
    cut = CrashSimulation::PowerCut.new
    cut.apply([:create, "a", 1])
    cut.apply([:write, 1, 0, "s" * 1024])
    assert_empty cut.files
    cut.apply([:sync, 1])
    cut.apply([:sync_folder])
    cut.apply([:write, 1, 100, "w" * 1000])
    assert_equal({"a" => "s" * 1024}, cut.files)
    assert_equal "s" * 100 + "w" * 1000, cut.whole["a"]
    seen = Array.new(200) { |i| cut.files(Random.new(i))["a"] }.uniq
    assert_operator seen.size, :>, 4
    seen.each { |bytes| assert_equal "s" * 100, bytes.byteslice(0, 100) }
    seen.each { |bytes| assert_includes ["s" * 412, "w" * 412], bytes.byteslice(100, 412) }
  end
end
