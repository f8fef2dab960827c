# frozen_string_literal: true

require_relative "../codec/cells"

module Bench
  class CodecRepeated < Scenario
    include CodecCells

    title "The same answer again"
    order 71
    about <<~TEXT
      A response that many clients get is kept serialised; each client gets it compressed: in the paper's way each time anew, by the paper's
      method; by the middleware with its cache once; by the middleware without its cache each time, at its faster level. Over HTTP from
      Puma, with Rack and without Rails: there the ratio is bounded by Puma's own work, which is the cost of the response that is not
      compressed. And *without a server*: one thread calls the application with its compression.
    TEXT
    entrants(*%w[json msgpack].product(READY_WAYS).map { |format, way| "#{format}-ready-#{way}" }, quick: %w[msgpack-ready-application msgpack-ready-cache])
    setting :payloads, %w[paper nested], quick: %w[paper], about: "of #{Payloads.names.join(", ")}"

    MIN = 5
    CACHED = "cache"
    PLACES = {nil => "from Puma", "alone" => "without a server"}.freeze

    def groups = payloads.product(PLACES.keys).map { |payload, place| entrants.map { |name| at(place, payload, name) } }

    def measure(cell)
      payload, _coding, place = cell.test.split
      place ? Entrants.fetch(cell.entrant).alone(payload, seconds: seconds) : super
    end

    def targets
      payloads.product(PLACES.to_a, entrants.grep(/#{CACHED}\z/o)).filter_map do |payload, (place, words), name|
        next unless entrants.include?(papers(name))
        ratio_target("repeated response, #{words}, #{Payloads.titles.fetch(payload)}, responses a second over the paper's way", at(place, payload, name),
          at(place, payload, papers(name)), PER_SECOND, at_least: MIN)
      end
    end

    def tables
      payloads.product(PLACES.to_a).map do |payload, (place, words)|
        table("#{Payloads.titles.fetch(payload).capitalize}, kept ready, #{words}", [["Response", :title], ["responses a second", "#{PER_SECOND}:0"],
          ["over the paper's way", ->(its) { ratio(its, at(place, payload, papers(its.entrant)), PER_SECOND) }], ["bytes of the body", "#{BODY}:0"],
          ["CPU µs per response", "#{CPU}:0"], *busy], entrants.map { |name| at(place, payload, name) })
      end
    end

    private

    def at(place, payload, name) = of(payload, name).tap { |its| its.test += " #{place}" if place }

    def papers(name) = "#{Entrants.fetch(name).format}-ready-application"
  end
end
