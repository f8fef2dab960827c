# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require "support/crash_simulation/power_cut"
require "support/crash_simulation/recording_files"
require "support/crash_simulation/workload"

# Journals that crash, and are looked at afterwards.
module Crashes
  Journal = Hikyaku::Log::Journal

  def setup
    super
    @root = Dir.mktmpdir("crashes")
  end

  def teardown
    FileUtils.rm_rf(@root)
    super
  end

  # Yields a folder with these files in it.
  def folder(files = {})
    path = File.join(@root, "one")
    Dir.mkdir(path)
    files.each { |name, bytes| File.binwrite(File.join(path, name), bytes) }
    yield path
  ensure
    FileUtils.rm_rf(path)
  end

  # Writes to a journal, and returns the calls and the workload that knows what was acknowledged.
  def rehearse(seed, turns:, files: {}, workload: nil, **options)
    folder(files) do |path|
      workload ||= CrashSimulation::Workload.new(Random.new(seed))
      trace = CrashSimulation::RecordingFiles.new(path)
      workload.work(trace, turns: turns, **options)
      [trace.calls, workload]
    end
  end

  def notes(calls) = calls.filter_map { |kind, value| value if kind == :note }

  # What is wrong with these files, if they are what is left.
  def complaint(files, workload, notes, **level)
    folder(files) { |path| workload.complaint(Journal::Files.new(path), workload.promise(notes, **level)) }
  end
end
