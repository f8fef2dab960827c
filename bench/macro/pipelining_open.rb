# frozen_string_literal: true

require_relative "../harness/pipelining_conclusion"
require_relative "../harness/plot"
require_relative "../pipelining/visits"

module Bench
  class PipeliningOpen < Scenario
    include Visits

    title "What the paper left open"
    order 67
    about <<~TEXT
      Why its ratio of the times without and with pipelining falls from 80 images on, and is irregular with 40 and more of 256 B. A bare pipeline,
      with request heads as long as the paper's browser's and with short ones: all requests written at once, as its add-on did, and never more than
      16 of them unanswered. What all at once costs is the uplink's: while seconds of requests leave it, so wait the acknowledgements behind them, and the
      server may not send.
    TEXT
    entrants "heads-450-serial", "heads-450-all", "heads-450-16", "heads-60-all", "heads-60-16"
    setting :links, %w[wcdma-550 wcdma-260], quick: %w[wcdma-260], about: "links, see bench/link/profiles.rb"
    setting :sizes, [256, 2_000], quick: [256], about: "bytes of an image"
    setting :counts, [1, 10, 20, 40, 60, 80, 100], quick: [10, 40], about: "images of a page"

    SERIAL = "heads-450-serial"

    def groups = links.product(sizes, counts).map { |link, size, count| entrants.map { |name| of(link, size, count, name) } }

    def tables(results)
      links.map do |link|
        rows = sizes.product(counts).map do |size, count|
          [Sheet.new(size, count), *entrants.map { |name| show(results.spread(of(link, size, count, name), SECONDS)) },
            *others.map { |name| show(ratio(results, link, size, count, name)) }]
        end
        Table.new(title: heading(link, YARDSTICK), rows: rows,
          head: ["Images", *entrants.map { |name| "#{title_of(name)}, s" }, *others.map { |name| "one by one over: #{title_of(name)}" }])
      end
    end

    def plots(results)
      links.product(sizes).to_h { |link, size| ["open-#{link}-#{size}.svg", ratios(results, link, size)] }.compact
    end

    private

    def others = entrants - [SERIAL]

    def of(link, size, count, name) = cell("#{link} #{YARDSTICK} #{size}", name, count)

    def ratio(results, link, size, count, name) = results.ratio(of(link, size, count, SERIAL), of(link, size, count, name), SECONDS)

    def ratios(results, link, size)
      series = others.filter_map do |name|
        points = counts.filter_map do |count|
          (spread = ratio(results, link, size, count, name)) && [count, spread.median, spread.min, spread.max]
        end
        {name: title_of(name), points: points} if points.any?
      end
      Plot.new(title: "One by one over a pipeline, #{size} B, #{link}", x: "images", y: "ratio of the times", x_log: false, series: series) if series.any?
    end
  end
end
