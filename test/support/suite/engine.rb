# frozen_string_literal: true

require "open3"
require_relative "../availability"

module Suite
  # Runs the tests of the engine in C, with sanitizers where there are some (they prove the same, and more; the compiler's own -O2 is
  # what the differential tests and all of test/integration run), and adds what they did to the report of this part of bin/test.
  class Engine
    FOLDER = File.expand_path("../../../ext/hikyaku/engine", __dir__)
    SANITIZERS = %w[-fsanitize=address,undefined -x c - -o /dev/null].freeze
    SUMMARY = /^hk_\w+: (\d+) tests, \d+ failed, \d+ skipped$|^\w+_replay: (\d+) files/
    private_constant :FOLDER, :SANITIZERS, :SUMMARY

    def initialize
      @tests = 0
      @skipped = []
    end

    # @return [Boolean] whether everything passed
    def run
      passed = sanitizers? ? make("asan") : make("check").tap { skip("make asan", "#{compiler} has no AddressSanitizer here") }
      report
      passed && !(Availability::NO_SKIP && @skipped.any?)
    end

    private

    def compiler = ENV.fetch("CC", "cc")

    def sanitizers? = Open3.capture2e(compiler, *SANITIZERS, stdin_data: "int main(void) { return 0; }").last.success?

    def make(target)
      puts "make #{target}"
      name = nil
      IO.popen(["make", "-C", FOLDER, "--no-print-directory", "CC=#{compiler}", target, err: %i[child out]]) do |output|
        output.each_line do |line|
          puts line
          line.scan(SUMMARY) { |tests, files| @tests += (tests || files).to_i }
          @skipped << "#{name} (#{line.strip})" if name
          name = line[/^SKIPPED (.+)/, 1]
        end
      end
      $?.success?
    end

    def skip(what, reason)
      puts "SKIPPED #{what}: #{reason}"
      @skipped << "engine: #{what} (#{reason})"
    end

    def report
      path = ENV["HIKYAKU_TEST_REPORT"] or return
      written = File.binread(path)
      before = written.empty? ? {} : Marshal.load(written)
      File.binwrite(path, Marshal.dump(before.merge(tests: before.fetch(:tests, 0) + @tests, skipped: before.fetch(:skipped, []) + @skipped)))
    end
  end
end

$stdout.sync = true
exit Suite::Engine.new.run
