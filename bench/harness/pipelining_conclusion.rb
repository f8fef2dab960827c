# frozen_string_literal: true

require_relative "digits"

module Bench
  # What the page about pipelining comes to, in words. Every number, and which way round a sentence goes, is from the figures; what was
  # not measured is not said.
  class PipeliningConclusion
    SERVER = "nginx"
    D = [SERVER, "D", 77].freeze
    SECONDS = "seconds"
    OPEN_SIZE = 256
    private_constant :D

    # @param results [Hash{Scenario => Results}]
    def initialize(results)
      @results = results.transform_keys { |scenario| scenario.class.key }
      @scenarios = results.keys.to_h { |scenario| [scenario.class.key, scenario] }
    end

    # @return [String, nil] a list in Markdown
    def to_s
      points = [*links_of("pipelining-pages").flat_map { |link| [programs(link), browsers(link)] }, paper, *open_links.map { |link| left_open(link) }].compact
      points.map { |point| "- #{point}\n" }.join unless points.empty?
    end

    private

    def links_of(key) = @scenarios[key]&.links || []

    def open_links = links_of("pipelining-open")

    # @return [Float, nil] the median
    def figure(key, test, client, count) = @results[key]&.spread(Cell.new(test, client, count), SECONDS)&.median

    def of_d(link, client) = figure("pipelining-pages", "#{link} #{D[0]} #{D[1]}", client, D[2])

    def programs(link)
      serial, six, two, httpx, ours = %w[net-http curl-6 curl-h2 httpx hikyaku].map { |client| of_d(link, client) }
      return unless serial && ours
      others = {"curl with six connections" => six, "curl with HTTP/2" => two, "httpx" => httpx}.compact
      "**#{link}, 77 images of 1.2 kB**: one request after another takes #{seconds(serial)}, Hikyaku's client #{seconds(ours)} " \
        "(#{format("%.3f", ours / serial)} of it)#{"; #{others.map { |name, its| "#{name} #{seconds(its)}" }.join(", ")}" if others.any?}."
    end

    def browsers(link)
      direct, through, two = %w[chromium chromium-proxy chromium-h2].map { |client| of_d(link, client) }
      return unless direct && through
      "**#{link}, the same page in Chromium**: #{seconds(direct)} as it comes, #{seconds(through)} through the proxy (#{format("%.2f", through / direct)} of it)" \
        "#{", #{seconds(two)} with HTTP/2 over TLS" if two}."
    end

    # With which link and how many connections the paper's figures without pipelining agree.
    def paper
      guesses = {"one connection and 260 ms" => %w[wcdma-260 heads-450-serial], "two connections and 550 ms" => %w[wcdma-550 net-http-2]}
      said = guesses.filter_map do |words, (link, client)|
        times = [[1_200, 77], [256, 100], [16_000, 100]].map { |size, count| figure("pipelining-paper", "#{link} #{SERVER} #{size}", client, count) }
        "#{words} give #{times.map { |time| seconds(time) }.join(", ")}" if times.none?(&:nil?)
      end
      return if said.empty?
      "**The paper's link**: it tells 27 s for 77 × 1.2 kB, 30 s for 100 × 256 B and at most 50 s for 100 × 16 kB without pipelining; #{said.join("; ")}."
    end

    # The ratio by number, all at once and with few unanswered.
    def left_open(link)
      counts = @scenarios["pipelining-open"].counts
      all, few = %w[heads-450-all heads-450-16].map { |client| ratios(link, client, counts) }
      return if all.size < 2 || few.size < 2
      "**What the paper left open** (#{link}, #{OPEN_SIZE} B, heads of 450 B): over one by one, all requests at once are faster by #{listed(all)}; " \
        "at most 16 unanswered by #{listed(few)}. #{course(all)}"
    end

    # @return [Hash{Integer => Float}] by number of images
    def ratios(link, client, counts)
      counts.to_h { |count|
        serial, its = ["heads-450-serial", client].map { |name| figure("pipelining-open", "#{link} #{SERVER} #{OPEN_SIZE}", name, count) }
        [count, (serial / its if serial && its&.positive?)]
      }.compact
    end

    def listed(ratios) = ratios.map { |count, ratio| "#{format("%.1f", ratio)} (#{count})" }.join(", ")

    def course(ratios)
      top = ratios.max_by(&:last).first
      last = ratios.keys.max
      return "It falls from #{top} images on." if top < last
      "It does not fall up to #{last} images."
    end

    def seconds(value) = "#{format((value < 10) ? "%.2f" : "%.1f", value)} s"
  end
end
