# frozen_string_literal: true

require "support/crash_simulation/recording_files"

# System calls of a journal of which the n-th fails, or writes half of what it is given. Calls are counted from 1.
class FailingFiles < CrashSimulation::RecordingFiles
  CALLS = %i[list create open reopen size read write sync_data sync sync_folder rename unlink].freeze

  # The call that failed, and how many there were of those that may.
  attr_reader :failed, :count

  # error: a class of Errno, or :short for a write that does not write all; only: names of calls that are counted;
  # always: from then on, too
  def initialize(path, at: nil, error: Errno::EIO, only: CALLS, always: false)
    super(path)
    @at = at
    @error = error
    @only = only
    @always = always
    @count = 0
  end

  CALLS.each do |name|
    define_method(name) do |*arguments|
      fails = counts?(name)
      next super(arguments[0], arguments[1].byteslice(0, (arguments[1].bytesize + 1) / 2), arguments[2]) if fails && @error == :short
      raise @error if fails
      super(*arguments)
    end
  end

  # It works again.
  def mend = @at = nil

  private

  def counts?(name)
    return false unless @only.include?(name)
    @count += 1
    return false unless @at && (@always ? @count >= @at : @count == @at)
    @failed ||= name
    true
  end
end
