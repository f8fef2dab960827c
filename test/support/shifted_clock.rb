# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"

# A wall clock that is set while a process runs which was started with this environment: see shifted_clock.c.
class ShiftedClock
  SOURCE = File.expand_path("shifted_clock.c", __dir__)
  FLAGS = %w[-std=c11 -D_GNU_SOURCE -O2 -fPIC -shared -Wall -Wextra -Werror].freeze
  COMPILER = ENV["CC"] || RbConfig::CONFIG["CC"]
  HOUR = 3_600
  DAY = 24 * HOUR
  YEAR = 365 * DAY
  private_constant :SOURCE, :FLAGS, :COMPILER

  # @return [String, nil] why there is none
  def self.missing
    return "clocks can be set by LD_PRELOAD on Linux only" unless RUBY_PLATFORM.include?("linux")
    "there is no C compiler" unless system(*COMPILER.split, "--version", out: File::NULL, err: File::NULL)
  end

  def initialize
    @folder = Dir.mktmpdir("hikyaku-clock")
    @file = File.join(@folder, "shift")
    File.binwrite(@file, [0].pack("q"))
    @library = File.join(@folder, "shifted_clock.so")
    said, status = Open3.capture2e(*COMPILER.split, *FLAGS, "-o", @library, SOURCE)
    raise said unless status.success?
  end

  # @return [Hash{String => String}] of a process with this clock
  def environment = {"LD_PRELOAD" => @library, "HIKYAKU_TEST_CLOCK" => @file}

  # @param seconds [Integer] that it is ahead of the true time, from now on; below 0: behind it
  # @return [void]
  def ahead(seconds)
    IO.binwrite(@file, [seconds * 1_000_000_000].pack("q"), 0)
  end

  # @return [void]
  def close = FileUtils.rm_rf(@folder)
end
