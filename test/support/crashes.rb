# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require "hikyaku/log/journal/power_cut"
require "hikyaku/log/journal/rehearsal"
require "hikyaku/log/journal/trace"

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

  # Works with a journal; gives what was done, and whoever knows what was acknowledged.
  def rehearse(seed, turns:, files: {}, rehearsal: nil, **options)
    folder(files) do |path|
      rehearsal ||= Journal::Rehearsal.new(Random.new(seed))
      trace = Journal::Trace.new(path)
      rehearsal.work(trace, turns: turns, **options)
      [trace.calls, rehearsal]
    end
  end

  def notes(calls) = calls.filter_map { |kind, value| value if kind == :note }

  # What is wrong with these files, if they are what is left.
  def complaint(files, rehearsal, notes, **level)
    folder(files) { |path| rehearsal.complaint(Journal::Files.new(path), rehearsal.promise(notes, **level)) }
  end
end
