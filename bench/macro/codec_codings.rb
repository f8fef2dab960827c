# frozen_string_literal: true

require_relative "../codec/cells"
require_relative "../harness/codec_conclusion"

module Bench
  class CodecCodings < Scenario
    include CodecCells

    title "gzip, br and zstd"
    order 73
    about <<~TEXT
      What Hikyaku's middleware makes of the same answers with each coding, every response anew, at the level that it has for responses; of gzip
      that is the one that nginx's bodies are compared with.
    TEXT
    entrants "json-middleware", "msgpack-middleware"
    setting :payloads, Payloads.names, quick: %w[paper], about: "of #{Payloads.names.join(", ")}"
    setting :codings, %w[gzip br zstd], about: "codings"

    GZIP = "gzip"

    def groups = payloads.product(entrants).map { |payload, name| codings.map { |coding| of(payload, name, coding) } }

    def tables(results)
      rows = payloads.product(entrants, codings).map do |payload, name, coding|
        its, gzip = of(payload, name, coding), of(payload, name, GZIP)
        [Payloads.titles.fetch(payload), Entrants.fetch(name).format, coding, show(results.spread(its, BODY), 0), show(results.ratio(its, gzip, BODY)),
          show(results.spread(its, CPU), 0), show(results.ratio(its, gzip, CPU)), show(results.spread(its, PER_SECOND), 0)]
      end
      [Table.new(title: "By coding", rows: rows,
        head: ["Answer", "Format", "Coding", "bytes of the body", "over gzip's", "CPU µs per response", "over gzip's", "responses a second"])]
    end

    def plots(results)
      payloads.map { |payload|
        figures = entrants.product(codings).to_h do |name, coding|
          ["#{Entrants.fetch(name).format}, #{coding}", results.spread(of(payload, name, coding), BODY)]
        end
        bars("codec-codings-#{payload}.svg", figures, title: "Bytes of the body, #{Payloads.titles.fetch(payload)}", unit: "bytes")
      }.reduce({}, :merge)
    end
  end
end
