# frozen_string_literal: true

require_relative "../codec/cells"
require_relative "../harness/codec_conclusion"

module Bench
  class CodecPayloads < Scenario
    include CodecCells

    title "Answers of other kinds"
    order 72
    about <<~TEXT
      The same with what APIs answer: 200 records of nine attributes, a nested answer whose items have authors, labels and long texts, and a series of numbers
      with two digits after the point, which MessagePack writes in nine bytes each and JSON in five.
    TEXT
    entrants(*%w[json oj msgpack].product(%w[none nginx]).map { |names| names.join("-") }, "json-middleware", "msgpack-middleware",
      quick: %w[json-none msgpack-none])
    setting :payloads, %w[records nested series], quick: %w[records], about: "of #{Payloads.names.join(", ")}"

    def groups = payloads.map { |payload| entrants.map { |name| of(payload, name) } }

    def tables(results)
      payloads.map do |payload|
        rows = entrants.map do |name|
          its = of(payload, name)
          [title_of(name), show(results.spread(its, PER_SECOND), 0), show(results.ratio(its, of(payload, "json-#{Entrants.fetch(name).way}"), PER_SECOND)),
            show(results.spread(its, "latency_ms", "median"), 1), show(results.spread(its, "p90"), 1), show(results.spread(its, BODY), 0),
            show(results.spread(its, CPU), 0), *busy(results, its)]
        end
        Table.new(title: Payloads.titles.fetch(payload).capitalize, rows: rows,
          head: ["Response", "responses a second", "over JSON (json) so compressed", "median, ms", "p90, ms", "bytes of the body", "CPU µs per response",
            *BUSY])
      end
    end

    def plots(results)
      payloads.map { |payload|
        figures = entrants.to_h { |name| [title_of(name), results.spread(of(payload, name), PER_SECOND)] }
        bars("codec-#{payload}.svg", figures, title: "Responses a second, #{Payloads.titles.fetch(payload)}", unit: "#{clients} clients")
      }.reduce({}, :merge)
    end
  end
end
