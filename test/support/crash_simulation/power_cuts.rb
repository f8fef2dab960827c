# frozen_string_literal: true

require "fileutils"
require "hikyaku/log/journal"
require_relative "power_cut"
require_relative "recording_files"
require_relative "workload"

module CrashSimulation
  # Lets the power fail after every system call of a journal, and again after the journal was opened and went on.
  class PowerCuts
    Journal = Hikyaku::Log::Journal
    TURNS = 60
    private_constant :Journal, :TURNS

    # How often the power has failed, and what was lost; nil: nothing.
    attr_reader :count, :complaint

    def initialize(folder, random)
      @folder = folder
      @random = random
      @count = 0
    end

    def name = "power cuts"

    def run(until_time:, &block)
      @until_time = until_time
      begin_life
      live_through(&block) until @complaint || over?
    end

    private

    def over? = Process.clock_gettime(Process::CLOCK_MONOTONIC) >= @until_time

    def begin_life
      @cut = PowerCut.new
      @workload = Workload.new(@random)
      @notes = []
      @lives = 0
    end

    # A run of the journal, cut off after each of its calls. The next run goes on from what was left at one of these, or from
    # what a killed process leaves: nothing is lost then, and the disk does not have it yet.
    def live_through
      calls = record
      chosen = @random.rand(2 * calls.size)
      following = nil
      calls.each_with_index do |call, i|
        @cut.apply(call)
        @notes << call.last if call.first == :note
        left = @cut.files((i % 4 == 0) ? nil : @random)
        look_at(left, "call #{i} of life #{@lives}")
        following = [left, @notes.dup] if i == chosen
        yield
        break if @complaint || over?
      end
      go_on(following)
    end

    def record
      with(@cut.whole) do |path|
        trace = RecordingFiles.new(path)
        @workload.work(trace, turns: TURNS, close: @random.rand(3) == 0)
        @cut.restart
        trace.calls
      end
    end

    # After some lives there is so much in it that little else happens.
    def go_on(following)
      return begin_life if (@lives += 1) > 5
      @cut, @notes = [PowerCut.new(following.first), following.last] if following
      with(@cut.whole) do |path|
        recovery = Journal::Recovery.new(Journal::Files.new(path))
        @workload.forget_after(recovery.position)
        recovery.close
      end
    end

    def look_at(files, about)
      @count += 1
      wrong = with(files) { |path| @workload.complaint(Journal::Files.new(path), @workload.promise(@notes)) }
      @complaint = "#{wrong} (#{about})" if wrong
    end

    def with(files)
      path = File.join(@folder, "journal")
      Dir.mkdir(path)
      files.each { |file, bytes| File.binwrite(File.join(path, file), bytes) }
      yield path
    ensure
      FileUtils.rm_rf(path)
    end
  end
end
