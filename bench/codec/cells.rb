# frozen_string_literal: true

require_relative "../harness/scenario"
require_relative "server"

module Bench
  # What the scenarios of compressed answers have in common. A cell's test is "PAYLOAD CODING", its entrant says what serialises and
  # what compresses, its size is the number of clients.
  module CodecCells
    PER_SECOND = "per_second"
    CPU = "cpu_us_each"
    BODY = "body_bytes"
    IDENTITY = Answers::IDENTITY

    # @param scenario [Class]
    def self.included(scenario)
      super
      scenario.suite Suite::CODEC
      scenario.setting :clients, 100, about: "clients at the same time"
      scenario.setting :seconds, 2.0, quick: 0.5, about: "seconds that are measured"
      scenario.setting :warmup, 0.7, quick: 0.3, about: "seconds before those"
    end

    # @param cell [Cell]
    # @return [Hash]
    def measure(cell)
      payload, coding = cell.test.split
      entrant = Entrants.fetch(cell.entrant)
      entrant.run { |servers| entrant.stage(servers).load(payload, coding: coding, clients: cell.size, seconds: seconds, warmup: warmup) }
    end

    # @param figures [Hash]
    # @return [String]
    def headline(figures)
      format("%.0f responses a second, %.0f µs of CPU each, %d bytes", *figures.values_at(PER_SECOND, CPU, BODY))
    end

    private

    # @param coding [String] of those that compress; the others have none
    # @return [Cell]
    def of(payload, name, coding = "gzip")
      cell("#{payload} #{(Entrants.fetch(name).way == "none") ? IDENTITY : coding}", name, clients)
    end

    # One with the same format.
    def beside(name, way) = "#{Entrants.fetch(name).format}-#{way}"

    # @return [Spread, nil] microseconds of CPU that are spent beyond those of the same answer that is not compressed
    def added(results, payload, name)
      results.combine([of(payload, name), of(payload, beside(name, "none"))], CPU) { |own, plain| own - plain }
    end
  end
end
