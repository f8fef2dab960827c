# frozen_string_literal: true

require_relative "../pipelining/visits"

module Bench
  class PipeliningOpen < Scenario
    include Visits

    title "What the paper left open"
    order 67
    about <<~TEXT
      Why the paper's ratio of the times without and with pipelining falls from 80 images on, and is irregular with 40 and more images of 256 B. A
      bare pipeline, with request heads as long as those of the paper's browser and with short ones: all requests written at once, as the
      paper's add-on did, and at most 16 of them without a response. The uplink is the cost of all at once: while seconds of requests leave it,
      the acknowledgements wait behind them, and the server may not send.
    TEXT
    entrants "heads-450-serial", "heads-450-all", "heads-450-16", "heads-60-all", "heads-60-16"
    setting :links, %w[wcdma-550 wcdma-260], quick: %w[wcdma-260], about: "links, see bench/link/link.rb"
    setting :sizes, [256, 2_000], quick: [256], about: "bytes of an image"
    setting :counts, [1, 10, 20, 40, 60, 80, 100], quick: [10, 40], about: "images of a page"

    ONE_BY_ONE = "heads-450-serial"

    def groups = links.product(sizes, counts).map { |link, size, count| entrants.map { |name| of(link, size, count, name) } }

    def tables
      links.map do |link|
        rows = sizes.product(counts).map do |size, count|
          [Sheet.new(size, count), *entrants.map { |name| show(spread(of(link, size, count, name), SECONDS)) }, *others.map { |name| show(faster(link, size, count, name)) }]
        end
        Table.new(heading(link, YARDSTICK), ["Images", *entrants.map { |name| "#{title_of(name)}, s" }, *others.map { |name| "one by one over: #{title_of(name)}" }], rows)
      end
    end

    def plots
      links.product(sizes).map { |link, size|
        lines("open-#{link}-#{size}.svg", others, counts, title: "One by one over a pipeline, #{size} B, #{link}", x: "images", y: "ratio of the times", x_log: false) { |name, count|
          faster(link, size, count, name)
        }
      }.reduce({}, :merge)
    end

    private

    def others = entrants - [ONE_BY_ONE]

    def of(link, size, count, name) = cell("#{link} #{YARDSTICK} #{size}", name, count)

    def faster(link, size, count, name) = ratio(of(link, size, count, ONE_BY_ONE), of(link, size, count, name), SECONDS)
  end
end
