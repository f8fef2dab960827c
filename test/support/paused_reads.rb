# frozen_string_literal: true

require "socket"
require_relative "preloaded"

# Lets a process that was started with this environment stand still before each read of a journal: see paused_reads.c.
class PausedReads < Preloaded
  PATIENCE = 180
  private_constant :PATIENCE

  def initialize
    super("paused_reads")
    @server = UNIXServer.new(File.join(@folder, "reads"))
  end

  def environment = super.merge("HIKYAKU_TEST_READS" => @server.path)

  # Waits until the process is about to read, has the block look at it meanwhile, and lets it read once.
  #
  # @param unless_it [#call] whether it will not come any more
  # @return [Boolean] false: it has not come
  def once(unless_it: -> { false })
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until @server.wait_readable(0.01)
      return false if unless_it.call
      raise "nobody reads a journal" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    end
    gate = @server.accept
    yield if block_given?
    true
  ensure
    gate&.close
  end

  # @return [void]
  def close
    @server.close
    super
  end
end
