# frozen_string_literal: true

require_relative "digits"

module Bench
  # What the page beside Action Cable comes to, in words. Every number, and which way round a sentence goes, is from the figures;
  # what was not measured is not said.
  class ActionCableConclusion
    CABLE = "cable-async"
    MOUNTED = "rails-c"
    CROWD = 1_000

    # @param results [Hash{Scenario => Results}]
    def initialize(results)
      @results = results.transform_keys { |scenario| scenario.class.key }
      @scenarios = results.keys.to_h { |scenario| [scenario.class.key, scenario] }
    end

    # @return [String, nil] a list in Markdown
    def to_s
      points = [delivery, subscribing, connection, latency, talk, outage, far, choice].compact
      points.map { |point| "- #{point}\n" }.join unless points.empty?
    end

    private

    # @return [Float, nil] the median
    def figure(key, test, entrant, size, *path)
      @results[key]&.spread(Cell.new(test, entrant, size), *path)&.median
    end

    # The number of clients nearest to a thousand.
    def crowd = @scenarios["action-cable-cost"]&.subscribers&.min_by { |n| (n - CROWD).abs }

    def cost(entrant, *path, door: @scenarios["action-cable-cost"]&.doors&.first) = figure("action-cable-cost", door, entrant, crowd, *path)

    def delivery
      compare(%w[delivery cpu_us_each]) do |cable, mounted|
        "**A delivery** to each of #{crowd} clients costs the server #{number(cable)} µs of CPU with Action Cable, #{number(mounted)} µs with Hikyaku " \
          "(engine in C) in the same Rails: #{times(cable, mounted)}."
      end
    end

    def subscribing
      compare(%w[connect cpu_us_each]) do |cable, mounted|
        "**To subscribe** costs it #{number(cable)} µs and #{number(mounted)} µs: #{times(cable, mounted)}."
      end
    end

    def connection
      compare(%w[connect rss_kb_each]) do |cable, mounted|
        "**A connection** that stands holds #{number(cable)} KB of its memory and #{number(mounted)} KB: #{times(cable, mounted)}."
      end
    end

    def latency
      compare(%w[delivery latency_ms p99]) do |cable, mounted|
        "**99 of 100 deliveries** to #{crowd} clients are there after #{number(cable)} ms and #{number(mounted)} ms."
      end
    end

    def compare(path)
      cable, mounted = [CABLE, MOUNTED].map { |entrant| cost(entrant, *path) }
      yield cable, mounted if cable&.positive? && mounted&.positive?
    end

    # The paper's claim, put to the test.
    def talk
      figures = %w[calm waves].to_h do |shape|
        [shape, [["socket", CABLE], ["hub", MOUNTED]].map { |door, entrant| talk_figures(shape, door, entrant) }]
      end
      return if figures.values.flatten.any?(&:nil?)
      (calm_cable, calm_mounted), (wave_cable, wave_mounted) = figures.values_at("calm", "waves")
      speaks_for = [calm_cable[0] <= calm_mounted[0], wave_cable[1] >= wave_mounted[1]].count(true)
      "**Everybody to everybody**, #{@scenarios["action-cable-talk"].clients} clients: a message a second from each arrives after #{number(calm_cable[0])} ms " \
        "(99th percentile) with Action Cable over its WebSockets, #{number(calm_mounted[0])} ms with Hikyaku mounted and a POST each; as fast as it goes, " \
        "#{rounded(wave_cable[1])} and #{rounded(wave_mounted[1])} deliveries a second. That Action Cable is the one for many-to-many " \
        "#{["is not so", "is so in one of the two only", "is so"].fetch(speaks_for)}: the deliveries are the work, not how a message comes in."
    end

    def talk_figures(shape, door, entrant)
      scenario = @scenarios["action-cable-talk"] or return
      paths = [%w[delivery latency_ms p99], %w[delivery per_second]]
      found = paths.map { |path| figure("action-cable-talk", "#{shape} #{door}", entrant, scenario.clients, *path) }
      found if found.none?(&:nil?)
    end

    def outage
      scenario = @scenarios["action-cable-outage"] or return
      lost, kept = [CABLE, MOUNTED].map { |entrant| figure("action-cable-outage", "outage", entrant, scenario.subscribers, "delivery", "lost") }
      return unless lost && kept
      "**Cut off for a second** during #{scenario.messages} updates, #{scenario.subscribers} clients lose #{rounded(lost)} deliveries with Action Cable, " \
        "#{rounded(kept)} with Hikyaku: who comes back to it says what it had last."
    end

    def far
      scenario = @scenarios["action-cable-fronts"] or return
      link = scenario.links.last
      two, three = %w[caddy-h2 caddy-h3].map { |front| figure("action-cable-fronts", "#{front} #{link}", "hikyaku-c", scenario.topics, "latency_ms", "p99") }
      return unless two && three
      "**Far away** (#{link.sub(" ", " ms, ")} % lost), ten streams over one connection: the 99th percentile is #{number(two)} ms over HTTP/2 and " \
        "#{number(three)} ms over HTTP/3."
    end

    # Only as far as the figures go; what a client that sends much costs was measured as a chat alone.
    def choice
      cheaper = compare(%w[delivery cpu_us_each]) { |cable, mounted| mounted < cable }
      return if cheaper.nil?
      return "**Which, then.** In this run a delivery is no cheaper with Hikyaku: what speaks for it is what arrives after a break." unless cheaper
      "**Which, then.** Pages that are told what has changed, one to many or many to many: streams, mounted in the application; the hub in a process of its own " \
        "where several processes publish or the application is often restarted. Action Cable where a client sends much that concerns the server alone, " \
        "keystrokes or moves of a pointer: one connection for both ways saves a request each. That was not measured here."
    end

    def times(more, less)
      return "no difference" if (more / less).between?(0.95, 1.05)
      (more > less) ? format("%.1f times less", more / less) : format("%.1f times more", less / more)
    end

    def number(value) = (value >= 100) ? rounded(value) : format("%.3g", value)

    def rounded(value) = Digits.grouped(value.round)
  end
end
