# frozen_string_literal: true

require "fileutils"
require "json"
require_relative "../../harness/markdown"
require_relative "../../harness/plot"

module Bench
  module Fanout
    # The summary as a page with tables and plots, and as JSON with every run.
    class Page
      def initialize(summary, options:, facts:)
        @summary = summary
        @options = options
        @facts = facts
      end

      # @return [String] the tables, in Markdown
      def tables = [targets, fanout, latency, connections, *(topics if @summary.topics?), incomplete].compact.join("\n")

      # @return [Array<String>] paths of the files written
      def write(directory)
        FileUtils.mkdir_p(directory)
        files = {"fanout.json" => json, "fanout.md" => markdown, "fanout-cpu.svg" => cpu_plot, "fanout-latency.svg" => latency_plot}
        files.map { |name, text| File.join(directory, name).tap { |path| File.write(path, text) } }
      end

      private

      def markdown
        <<~TEXT
          # Fan-out

          What one delivery costs, as a multiple of the least that it can cost: a bare `send()` loop in C, measured in the same run.
          Each server runs alone on one core, the load on another, over loopback; a message is #{@options.size} bytes and the next is
          published only when all have the last. #{@options.rounds} rounds, each with every server; no run is left out. A cell is the median
          of the rounds, then the least and the greatest. CPU is the server's own, over all its threads, publishing included. A ratio is
          taken within a round. Compare ratios, not microseconds: they depend on the machine.

          Again with: `bin/bench fanout#{" --peers" if @options.peers}`

          #{Markdown.table(%w[What Value], @facts.to_a)}
          #{tables}
          ![CPU per delivery over the floor](fanout-cpu.svg)

          ![Latency by number of subscribers](fanout-latency.svg)
        TEXT
      end

      def targets
        rows = @summary.targets.map do |target|
          bound = (target.bound == :at_most) ? "at most" : "at least"
          [target.name, "#{bound} #{target.limit}", target.spread.to_s, target.met? ? "met" : "**missed**"]
        end
        section("Targets", %w[Target Bound Measured Verdict], rows)
      end

      def fanout
        rows = each_row do |entrant, n|
          [@summary.cpu(entrant, n).to_s, @summary.over_floor(entrant, n).to_s,
            @summary.spread("fanout", entrant, n, "publish", "cpu_us_each").to_s(0),
            @summary.spread("fanout", entrant, n, "delivery", "bytes_each").to_s(0)]
        end
        section("CPU of the server", ["Server", "Subscribers", "µs per delivery", "over the floor", "µs per publish to all", "bytes per delivery"], rows)
      end

      def latency
        rows = each_row do |entrant, n|
          %w[mean median min max p99].map { |figure| @summary.spread("fanout", entrant, n, "delivery", "latency_ms", figure).to_s }
        end
        section("Latency, publish to receipt, ms", ["Server", "Subscribers", "mean", "median", "min", "max", "p99"], rows)
      end

      def connections
        rows = each_row do |entrant, n|
          [@summary.spread("fanout", entrant, n, "connect", "per_second").to_s(0),
            @summary.spread("fanout", entrant, n, "connect", "cpu_us_each").to_s(0),
            @summary.spread("fanout", entrant, n, "connect", "rss_kb_each").to_s(1)]
        end
        section("Connections", ["Server", "Subscribers", "connects per second", "CPU µs per connect", "KB per connection"], rows)
      end

      def topics
        rows = @summary.entrants.map { |entrant| publish_row(entrant, "one", 1) }
        rows << publish_row(@summary.entrants.find { |entrant| entrant.name == "hikyaku" }, "topics", @summary.topics)
        rows << ["the last over one subscriber, Hikyaku", "", @summary.topic_rate.to_s, @summary.topic_cpu.to_s]
        section("A topic for each subscriber: #{@options.publishers} publishers, #{@options.publishes} updates, each to one subscriber",
          ["Server", "Subscribers, each on its topic", "publishes per second", "CPU µs per publish"], rows)
      end

      def publish_row(entrant, test, subscribers)
        [entrant.title, subscribers, @summary.spread(test, entrant, subscribers, "publish", "per_second").to_s(0),
          @summary.spread(test, entrant, subscribers, "publish", "cpu_us_each").to_s(1)]
      end

      def incomplete
        return if @summary.incomplete.empty?
        rows = @summary.incomplete.map do |run|
          [run.entrant.title, run.test, run.subscribers, run.round + 1, run.figures["dead"], run.figures["publish"]["refused"],
            run.figures["delivery"]["lost"]]
        end
        section("Incomplete runs (their figures are in the tables)", %w[Server Test Subscribers Round dead refused lost], rows)
      end

      def each_row
        @summary.entrants.product(@summary.subscribers).map { |entrant, n| [entrant.title, n, *yield(entrant, n)] }
      end

      def section(title, head, rows) = "## #{title}\n\n#{Markdown.table(head, rows)}"

      def cpu_plot
        Plot.new(title: "CPU per delivery, as a multiple of the floor", x: "subscribers", y: "times the floor",
          series: series { |entrant, n| @summary.over_floor(entrant, n) },
          guide: {y: Summary::MOST_CPU_OVER_FLOOR, label: "target"}).to_svg
      end

      def latency_plot
        Plot.new(title: "Mean latency, publish to receipt", x: "subscribers", y: "ms", y_log: true,
          series: series { |entrant, n| @summary.spread("fanout", entrant, n, "delivery", "latency_ms", "mean") }).to_svg
      end

      def series
        @summary.entrants.map do |entrant|
          points = @summary.subscribers.map do |n|
            spread = yield(entrant, n)
            [n, spread.median, spread.min, spread.max]
          end
          {name: entrant.title, points: points}
        end
      end

      def json
        runs = @summary.runs.map do |run|
          {"test" => run.test, "entrant" => run.entrant.name, "subscribers" => run.subscribers, "round" => run.round + 1, "figures" => run.figures}
        end
        targets = @summary.targets.map do |target|
          {"name" => target.name, "bound" => target.bound.to_s, "limit" => target.limit, "met" => target.met?, **target.spread.to_h}
        end
        JSON.pretty_generate("machine" => @facts, "options" => @options.to_h, "targets" => targets, "runs" => runs) << "\n"
      end
    end
  end
end
