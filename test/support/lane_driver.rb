# frozen_string_literal: true

require "fileutils"
require "open3"
require "tmpdir"
require_relative "../../bench/harness/build"

# One direction of bench/link without a clock, or two that share a line: see lane_driver.c.
module LaneDriver
  SOURCES = [File.expand_path("lane_driver.c", __dir__), File.join(Bench::Build::LINK, "lane.c")].freeze
  Out = Struct.new(:packets, :dropped, :lost, keyword_init: true)

  class << self
    # @param packets [Array<Array(Numeric, Integer, Integer)>] when each is put (ms), its bytes, its lane (0)
    # @param settings [Hash] of the lanes: bits a second, milliseconds, a share, bytes
    # @return [Out] packets: of each that came out, by its number, lane and milliseconds; of either lane how many were dropped and lost
    def run(packets, bits: 0, delay: 0, jitter: 0, loss: 0, queue: 1e9, setup: 0, idle: 0, seed: 1, turn: 0, factor: 1)
      words = [bits, delay, jitter, loss, queue, setup, idle, seed, turn, factor].map(&:to_s)
      out, status = Open3.capture2(program, *words, stdin_data: packets.map { |at, length, lane| "#{at} #{length} #{lane.to_i}\n" }.join)
      raise "the driver of lanes ended with #{status.exitstatus}" unless status.success?
      *came, first, second = out.lines.map(&:split)
      counts = [first, second]
      Out.new(packets: came.map { |number, lane, at| [Integer(number), Integer(lane), Float(at)] },
        dropped: counts.map { |line| Integer(line[1]) }, lost: counts.map { |line| Integer(line[3]) })
    end

    private

    def program = @program ||= compile

    def compile
      folder = Dir.mktmpdir("lane")
      Minitest.after_run { FileUtils.remove_entry(folder) }
      path = File.join(folder, "lane_driver")
      said, status = Open3.capture2e(ENV.fetch("CC", "cc"), *Bench::Build::FLAGS, "-Werror", "-I#{Bench::Build::LINK}", "-o", path, *SOURCES)
      raise said unless status.success?
      path
    end
  end
end
