# frozen_string_literal: true

require "fileutils"
require "timeout"

# Thousands of subscribers in a process of their own, which count what comes: see counting_client.c.
class CountingClient
  SOURCE = File.expand_path("counting_client.c", __dir__)
  PROGRAM = File.expand_path("../../tmp/counting_client", __dir__)
  FLAGS = %w[-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror].freeze
  PATIENCE = 180
  private_constant :SOURCE, :PROGRAM, :FLAGS, :PATIENCE

  # Events of the stream with the fewest and with the most, events that were not the next one, streams that have ended.
  Counts = Struct.new(:least, :most, :wrong, :ended)

  # @return [Integer] how many there are
  attr_reader :size

  # How many of so many the files that may be opened leave room for, here and at the hub.
  def self.affordable(count) = [count, Process.getrlimit(:NOFILE).last - 500].min

  # @param port [Integer]
  # @param size [Integer]
  # @param target [String] of the request
  def initialize(port, size, target)
    compile
    @size = size
    @io = IO.popen([PROGRAM, port.to_s, size.to_s], "r+")
    @io.puts("GET #{target} HTTP/1.1", "Host: hub.example.com", "", ".")
    line = gets
    raise "the subscribers were not opened: #{line.inspect}" unless line == "open"
  end

  # @return [Counts]
  def counts
    @io.puts("count")
    Counts.new(*gets.split.map(&:to_i))
  end

  def close = @io.close

  private

  def gets = Timeout.timeout(PATIENCE) { @io.gets&.chomp }

  def compile
    return if File.exist?(PROGRAM) && File.mtime(PROGRAM) > File.mtime(SOURCE)
    FileUtils.mkdir_p(File.dirname(PROGRAM))
    system(ENV.fetch("CC", "cc"), *FLAGS, "-o", PROGRAM, SOURCE, exception: true)
  end
end
