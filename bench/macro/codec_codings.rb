# frozen_string_literal: true

require_relative "../codec/cells"

module Bench
  class CodecCodings < Scenario
    include CodecCells

    title "gzip, br and zstd"
    order 73
    about <<~TEXT
      The same responses from Hikyaku's middleware with each coding, each response anew, at the middleware's level for responses. The level of
      gzip is the one that nginx's bodies are compared with.
    TEXT
    entrants "json-middleware", "msgpack-middleware"
    setting :payloads, Payloads.names, quick: %w[paper], about: "of #{Payloads.names.join(", ")}"
    setting :codings, %w[gzip br zstd], about: "codings"

    def groups = payloads.product(entrants).map { |payload, name| codings.map { |coding| of(payload, name, coding) } }

    def tables
      gzip = ->(its) { of(its.test.split.first, its.entrant, "gzip") }
      [table("By coding", [["Answer", ->(its) { Payloads.titles.fetch(its.test.split.first) }], ["Format", ->(its) { Entrants.fetch(its.entrant).format }],
        ["Coding", ->(its) { its.test.split.last }], ["bytes of the body", "#{BODY}:0"], ["over gzip's", ->(its) { ratio(its, gzip.call(its), BODY) }],
        ["CPU µs per response", "#{CPU}:0"], ["over gzip's", ->(its) { ratio(its, gzip.call(its), CPU) }], ["responses a second", "#{PER_SECOND}:0"]])]
    end

    def plots
      payloads.map { |payload|
        bars("codec-codings-#{payload}.svg", BODY, cells.select { |its| its.test.start_with?(payload) }, title: "Bytes of the body, #{Payloads.titles.fetch(payload)}",
          unit: "bytes") { |its| "#{Entrants.fetch(its.entrant).format}, #{its.test.split.last}" }
      }.reduce({}, :merge)
    end
  end
end
