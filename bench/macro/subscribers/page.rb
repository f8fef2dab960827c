# frozen_string_literal: true

require "fileutils"
require "json"
require_relative "../../harness/markdown"
require_relative "../../harness/spread"
require_relative "runs"

module Bench
  module Subscribers
    # The runs as tables, and as JSON.
    class Page
      LEAST_SUBSCRIBERS = 5_000
      TIMES = %w[mean median min max p99].freeze

      def initialize(runs, options:, facts:)
        @runs = runs
        @options = options
        @facts = facts
      end

      # @return [Boolean] whether 5,000 or more stayed, nothing was lost and every ordinary request was answered
      def met?
        enough = @runs.select { |run| run.subscribers >= LEAST_SUBSCRIBERS }
        enough.any? && enough.all? { |run| whole?(run) }
      end

      # @return [String] in Markdown
      def tables = [target, requests, deliveries].join("\n")

      # @return [Array<String>] paths of the files written
      def write(directory)
        FileUtils.mkdir_p(directory)
        {"subscribers.json" => json, "subscribers.md" => markdown}.map do |name, text|
          File.join(directory, name).tap { |path| File.write(path, text) }
        end
      end

      private

      def markdown
        <<~TEXT
          # Subscribers beside ordinary requests

          One Puma process with #{Runs::THREADS} threads: an ordinary route, and the hub. #{@options.requests} ordinary requests a second over
          #{@options.connections} connections for #{@options.seconds} s, while the subscribers are silent ("idle"), and again while
          #{@options.rate} updates a second go to all of them ("publishing"). #{@options.rounds} rounds, none left out; a cell is the median of
          the rounds, then the least and the greatest. The load runs on one core, so the times of ordinary requests include their wait
          for a client that is reading thousands of events.

          Again with: `bin/bench subscribers`

          #{Markdown.table(%w[What Value], @facts.to_a)}
          #{tables}
        TEXT
      end

      def target
        rows = [["#{LEAST_SUBSCRIBERS} or more subscribers: none lost, nothing lost, every ordinary request answered", met? ? "met" : "**missed**"]]
        "## Target\n\n#{Markdown.table(%w[Target Verdict], rows)}"
      end

      def requests
        rows = numbers.flat_map do |n, runs|
          %w[idle publishing].map do |state|
            figures = runs.map { |run| run.requests[state]["publish"] }
            [n, state, "#{figures.sum { |f| f["accepted"] }} of #{figures.size * @options.requests * @options.seconds}",
              *TIMES.map { |time| Spread.new(figures.map { |f| f["answer_ms"][time] }).to_s }]
          end
        end
        "## Ordinary requests, ms until answered\n\n#{Markdown.table(%w[Subscribers State answered] + TIMES, rows)}"
      end

      def deliveries
        rows = numbers.map do |n, runs|
          figures = runs.map(&:figures)
          [n, figures.map { |f| f["subscribers"] }.min, figures.sum { |f| f["delivery"]["lost"] },
            *%w[median p99 max].map { |time| Spread.new(figures.map { |f| f["delivery"]["latency_ms"][time] }).to_s },
            Spread.new(figures.map { |f| f["connect"]["per_second"] }).to_s(0), Spread.new(figures.map { |f| f["rss_mb"] }).to_s(0)]
        end
        "## Updates to all, ms until received\n\n" + Markdown.table(["Subscribers", "stayed", "lost", "median", "p99", "max", "connects per second", "server MB"], rows)
      end

      def numbers = @runs.group_by(&:subscribers)

      def whole?(run) = run.figures["whole"] && run.requests.size == 2 && run.requests.each_value.all? { |figures| figures["whole"] }

      def json
        runs = @runs.map(&:to_h)
        JSON.pretty_generate("machine" => @facts, "options" => @options.to_h, "met" => met?, "runs" => runs) << "\n"
      end
    end
  end
end
