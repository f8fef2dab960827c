# frozen_string_literal: true

require_relative "digits"

module Bench
  # What the page about JSON and MessagePack comes to, in words. Every number, and which way round a sentence goes, is from the figures;
  # what was not measured is not said.
  class CodecConclusion
    PAYLOAD = "paper"

    # @param results [Hash{Scenario => Results}]
    def initialize(results)
      @scenario, @results = results.find { |scenario, _| scenario.class.key == "codec-paper" }
    end

    # @return [String, nil] a list in Markdown
    def to_s
      return unless @scenario
      points = [formats, sizes, costs].compact
      points.map { |point| "- #{point}\n" }.join unless points.empty?
    end

    private

    # @return [Float, nil] the median
    def figure(name, *path)
      way = name.split("-").last
      @results.spread(Cell.new("#{PAYLOAD} #{(way == "none") ? "identity" : "gzip"}", name, @scenario.clients), *path)&.median
    end

    def formats
      json, oj, msgpack = %w[json oj msgpack].map { |format| figure("#{format}-none", "per_second") }
      return unless json && msgpack
      others = oj ? ", #{times(msgpack / oj)} as many as in JSON by oj" : ""
      "**Not compressed**, #{times(msgpack / json)} as many answers leave in a second in MessagePack as in JSON by Rails' own way#{others}."
    end

    def sizes
      named = {"application" => "the paper's way", "nginx" => "nginx", "middleware" => "Hikyaku's middleware"}
      said = named.filter_map do |way, words|
        bytes = figure("msgpack-#{way}", "body_bytes")
        "#{Digits.grouped(bytes.round)} by #{words}" if bytes
      end
      "**Bytes** of the MessagePack body: #{said.join(", ")}." if said.any?
    end

    def costs
      named = {"application" => "compressed by the application", "nginx" => "by nginx", "middleware" => "by Hikyaku's middleware",
               "cache" => "by it with its cache"}
      said = named.filter_map do |way, words|
        cpu = figure("msgpack-#{way}", "cpu_us_each")
        "#{cpu.round} µs #{words}" if cpu
      end
      "**CPU** of all processes for a response in MessagePack: #{said.join(", ")}." if said.any?
    end

    def times(ratio) = "#{format("%.2f", ratio)} times"
  end
end
