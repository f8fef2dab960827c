# frozen_string_literal: true

require_relative "../harness/scenario"

module Bench
  # What the scenarios of compressed responses share. A cell's test is "PAYLOAD CODING", its entrant says what serialises and what
  # compresses, its size is the number of clients.
  module CodecCells
    PER_SECOND = "per_second"
    CPU = "cpu_us_each"
    BODY = "body_bytes"

    def self.included(scenario)
      super
      scenario.suite "codec"
      scenario.setting :clients, 100, about: "clients at the same time"
      scenario.setting :seconds, 2.0, quick: 0.5, about: "seconds that are measured"
      scenario.setting :warmup, 0.7, quick: 0.3, about: "seconds before those"
    end

    def measure(cell)
      payload, coding = cell.test.split
      entrant = Entrants.fetch(cell.entrant)
      entrant.run { |servers| entrant.stage(servers).load(payload, coding: coding, clients: cell.size, seconds: seconds, warmup: warmup) }
    end

    def headline(figures) = format("%.0f responses a second, %.0f µs of CPU each, %d bytes", *figures.values_at(PER_SECOND, CPU, BODY))

    private

    # @param coding [String] of the entrants that compress
    def of(payload, name, coding = "gzip") = cell("#{payload} #{(Entrants.fetch(name).way == "none") ? Answers::IDENTITY : coding}", name, clients)

    # The entrant with the same format that compresses in another way.
    def beside(name, way) = "#{Entrants.fetch(name).format}-#{way}"
  end
end
