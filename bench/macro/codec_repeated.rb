# frozen_string_literal: true

require_relative "../codec/cells"
require_relative "../harness/codec_conclusion"

module Bench
  class CodecRepeated < Scenario
    include CodecCells

    title "The same answer again"
    order 71
    about <<~TEXT
      An answer that many get is kept serialised; to each it is sent compressed: in the paper's way for each of them anew, with the method that the paper
      has; by the middleware with its cache once; without its cache each time, at its quicker level. Over HTTP from Puma, with Rack and without Rails: there the
      ratio is bounded by what Puma does for a response anyway, which is what the same response costs that is not compressed. And *alone*: the
      application with what compresses is called from one thread, and there is no server.
    TEXT
    entrants(*%w[json msgpack].product(ReadyServer::WAYS.keys).map { |format, way| "#{format}-ready-#{way}" },
      quick: %w[msgpack-ready-application msgpack-ready-cache])
    setting :payloads, %w[paper nested], quick: %w[paper], about: "of #{Payloads.names.join(", ")}"

    LEAST = 5
    PAPERS = "application"
    CACHED = "cache"
    ALONE = "alone"
    PLACES = {nil => "from Puma", ALONE => "without a server"}.freeze

    def groups = payloads.product(PLACES.keys).map { |payload, place| entrants.map { |name| at(place, payload, name) } }

    def measure(cell)
      payload, _coding, place = cell.test.split
      place ? Entrants.fetch(cell.entrant).alone(payload, seconds: seconds) : super
    end

    def targets(results)
      cached = entrants.select { |name| name.end_with?(CACHED) && entrants.include?(papers(name)) }
      payloads.product(PLACES.to_a, cached).map do |payload, (place, words), name|
        results.ratio_target("repeated response, #{words}, #{Payloads.titles.fetch(payload)}, responses a second over the paper's way",
          at(place, payload, name), at(place, payload, papers(name)), PER_SECOND, at_least: LEAST)
      end
    end

    def tables(results)
      payloads.product(PLACES.to_a).map do |payload, (place, words)|
        rows = entrants.map do |name|
          its = at(place, payload, name)
          [title_of(name), show(results.spread(its, PER_SECOND), 0), show(results.ratio(its, at(place, payload, papers(name)), PER_SECOND)),
            show(results.spread(its, BODY), 0), show(results.spread(its, CPU), 0), *busy(results, its)]
        end
        Table.new(title: "#{Payloads.titles.fetch(payload).capitalize}, kept ready, #{words}", rows: rows,
          head: ["Response", "responses a second", "over the paper's way", "bytes of the body", "CPU µs per response", *BUSY])
      end
    end

    private

    def at(place, payload, name) = of(payload, name).then { |cell| place ? cell.dup.tap { |its| its.test += " #{place}" } : cell }

    def papers(name) = "#{Entrants.fetch(name).format}-ready-#{PAPERS}"
  end
end
