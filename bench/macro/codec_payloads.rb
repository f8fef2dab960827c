# frozen_string_literal: true

require_relative "../codec/cells"

module Bench
  class CodecPayloads < Scenario
    include CodecCells

    title "Answers of other kinds"
    order 72
    about <<~TEXT
      The same with responses of APIs: 200 records of nine attributes; a nested response whose items have authors, labels and long texts; and
      a series of numbers with two decimals, which MessagePack writes in nine bytes each and JSON in five.
    TEXT
    entrants(*%w[json oj msgpack].product(%w[none nginx]).map { |names| names.join("-") }, "json-middleware", "msgpack-middleware", quick: %w[json-none msgpack-none])
    setting :payloads, %w[records nested series], quick: %w[records], about: "of #{Payloads.names.join(", ")}"

    def groups = payloads.map { |payload| entrants.map { |name| of(payload, name) } }

    def tables
      payloads.zip(groups).map do |payload, its|
        table(Payloads.titles.fetch(payload).capitalize, [["Response", :title], ["responses a second", "#{PER_SECOND}:0"],
          ["over JSON (json) so compressed", ->(one) { ratio(one, of(payload, "json-#{Entrants.fetch(one.entrant).way}"), PER_SECOND) }],
          ["median, ms", "latency_ms.median:1"], ["p90, ms", "p90:1"], ["bytes of the body", "#{BODY}:0"], ["CPU µs per response", "#{CPU}:0"], *busy], its)
      end
    end

    def plots
      payloads.zip(groups).map { |payload, its|
        bars("codec-#{payload}.svg", PER_SECOND, its, title: "Responses a second, #{Payloads.titles.fetch(payload)}", unit: "#{clients} clients")
      }.reduce({}, :merge)
    end
  end
end
