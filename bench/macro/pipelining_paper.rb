# frozen_string_literal: true

require_relative "../pipelining/visits"

module Bench
  class PipeliningPaper < Scenario
    include Visits

    title "The paper's own link"
    order 66
    about <<~TEXT
      The paper states its rates, 64 and 384 kbit/s, but not its round trip. Its times without pipelining imply it, given the number of
      connections of its browser: with one connection, 27 seconds for 77 images mean a round trip of 260 ms; with two, as its browser is
      remembered to have had, 550 ms. Its other figures decide. Request heads of 450 bytes are like those of that browser; those of Net::HTTP
      have 146.
    TEXT
    entrants "heads-450-serial", "net-http-2", "heads-450-all"
    setting :links, %w[wcdma-550 wcdma-260], about: "links, see bench/link/link.rb"
    setting :sheets, %w[1200x77 256x100 16000x100], quick: %w[256x20], about: "bytes of an image x images"

    # Seconds without and with pipelining; of some the paper gives only a limit.
    PAPER = {"1200x77" => %w[27 8], "256x100" => ["30", nil], "16000x100" => ["at most 50", nil]}.freeze

    def groups = links.product(sheets).map { |link, sheet| entrants.map { |name| of(link, sheet, name) } }

    def tables
      columns = links.product(entrants)
      rows = sheets.map do |sheet|
        [sheet.sub("x", " B × "), *PAPER.fetch(sheet, [nil, nil]).map { |seconds| seconds || "–" }, *columns.map { |link, name| show(spread(of(link, sheet, name), SECONDS), 1) }]
      end
      [Table.new("Seconds", ["Images", "the paper, without", "with", *columns.map { |link, name| "#{title_of(name)}, #{link}" }], rows)]
    end

    private

    def of(link, sheet, name)
      size, count = sheet.split("x")
      cell("#{link} #{YARDSTICK} #{size}", name, Integer(count))
    end
  end
end
