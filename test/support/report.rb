# frozen_string_literal: true

# Writes what one test process did into the file that bin/test names in HIKYAKU_TEST_REPORT, and lists
# the skipped tests with their reasons, which Minitest itself keeps to its verbose mode. What failed is named again
# at the very end of bin/test: of a long log, the end is what one sees. The slowest tests are named there, too.
module Report
  PATH = ENV["HIKYAKU_TEST_REPORT"]
  SLOWEST = 8

  class Reporter < Minitest::StatisticsReporter
    def record(result)
      super
      @slow = [*@slow, [result.time, "#{result.klass}: #{result.name}"]].max_by(SLOWEST, &:first)
    end

    def report
      super
      skipped = results.select(&:skipped?).map { |result| "#{result.klass}: #{result.name} (#{result.failure.message})" }
      PATH ? write(skipped) : list(skipped)
    end

    private

    def write(skipped)
      File.binwrite(PATH, Marshal.dump({tests: count, failed: failed, skipped: skipped, slow: @slow || []}))
    end

    def failed
      results.reject { |result| result.passed? || result.skipped? }.map do |result|
        "#{result.klass}: #{result.name} (#{legible(result.failure.message).lines.first(3).map(&:strip).join(" ")[0, 300]})"
      end
    end

    # A message may hold bytes that are no text.
    def legible(message) = message.dup.force_encoding(Encoding::UTF_8).scrub

    def list(skipped)
      io.puts "\nSKIPPED:", skipped.map { |line| "  #{line}" } if skipped.any?
    end
  end

  # What bin/test asks of a test process that does not end: which test it is in, and where every thread stands.
  Signal.trap("USR2") do
    text = Thread.list.map { |thread| "#{thread.inspect}\n#{thread.backtrace&.map { |line| "    #{line}" }&.join("\n")}\n" }.join("\n")
    $stderr.write("\nstill running: #{@running}\n\n#{text}\n")
  end

  class << self
    attr_accessor :running
  end

  # Remembers the test that runs, and shows bin/test that the tests go on.
  module Named
    def before_setup
      Report.running = location_name
      File.utime(nil, nil, PATH) if PATH
      super
    end

    private

    def location_name = "#{self.class}##{name}"
  end

  def self.minitest_plugin_init(options)
    Minitest.reporter << Reporter.new(options[:io], options)
  end
end
Minitest.extensions << Report
Minitest::Test.prepend(Report::Named)
