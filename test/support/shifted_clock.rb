# frozen_string_literal: true

require_relative "preloaded"

# A wall clock that is set while a process runs which was started with this environment: see shifted_clock.c.
class ShiftedClock < Preloaded
  HOUR = 3_600
  DAY = 24 * HOUR
  YEAR = 365 * DAY

  def initialize
    super("shifted_clock")
    @file = File.join(@folder, "shift")
    File.binwrite(@file, [0].pack("q"))
  end

  # @return [Hash{String => String}] of a process with this clock
  def environment = super.merge("HIKYAKU_TEST_CLOCK" => @file)

  # @param seconds [Integer] that it is ahead of the true time, from now on; below 0: behind it
  # @return [void]
  def ahead(seconds)
    IO.binwrite(@file, [seconds * 1_000_000_000].pack("q"), 0)
  end
end
