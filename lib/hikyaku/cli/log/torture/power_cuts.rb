# frozen_string_literal: true

require "fileutils"
require_relative "../folder"
require_relative "../../../log/journal/power_cut"
require_relative "../../../log/journal/rehearsal"
require_relative "../../../log/journal/trace"

module Hikyaku
  module CLI
    class Log < Command
      class Torture < Folder
        # The power fails after every system call, and after it has come back again.
        class PowerCuts
          Journal = ::Hikyaku::Log::Journal
          TURNS = 60
          private_constant :Journal, :TURNS

          # @return [Integer] how often it has failed
          attr_reader :count
          # @return [String, nil] what was lost
          attr_reader :complaint

          # @param folder [String]
          # @param random [Random]
          def initialize(folder, random)
            @folder = folder
            @random = random
            @count = 0
          end

          # @return [String]
          def name = "power cuts"

          # @param until_time [Float] seconds of the monotonic clock
          # @yield now and then
          # @return [void]
          def run(until_time:, &block)
            @until_time = until_time
            begin_life
            live_through(&block) until @complaint || over?
          end

          private

          def over? = Process.clock_gettime(Process::CLOCK_MONOTONIC) >= @until_time

          def begin_life
            @cut = Journal::PowerCut.new
            @rehearsal = Journal::Rehearsal.new(@random)
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
              trace = Journal::Trace.new(path)
              @rehearsal.work(trace, turns: TURNS, close: @random.rand(3) == 0)
              @cut.restart
              trace.calls
            end
          end

          # After some lives there is so much in it that little else happens.
          def go_on(following)
            return begin_life if (@lives += 1) > 5
            @cut, @notes = [Journal::PowerCut.new(following.first), following.last] if following
            with(@cut.whole) do |path|
              recovery = Journal::Recovery.new(Journal::Files.new(path))
              @rehearsal.forget_after(recovery.position)
              recovery.close
            end
          end

          def look_at(files, about)
            @count += 1
            wrong = with(files) { |path| @rehearsal.complaint(Journal::Files.new(path), @rehearsal.promise(@notes)) }
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
    end
  end
end
