# frozen_string_literal: true

require_relative "../harness/pipelining_conclusion"
require_relative "../pipelining/visits"

module Bench
  class PipeliningPaper < Scenario
    include Visits

    title "The paper's own link"
    order 66
    about <<~TEXT
      The paper says its rates, 64 and 384 kbit/s, and not its round trip. Its times without pipelining tell it, given how many connections its
      browser had: with one, 27 seconds for 77 images are a round trip of 260 ms; with two, as that browser is remembered to have had, of 550 ms. Its other
      figures decide. Request heads of 450 bytes are like that browser's; those of Net::HTTP have 146.
    TEXT
    entrants "heads-450-serial", "net-http-2", "heads-450-all"
    setting :links, %w[wcdma-550 wcdma-260], about: "links, see bench/link/profiles.rb"
    setting :sheets, %w[1200x77 256x100 16000x100], quick: %w[256x20], about: "bytes of an image x images"

    # Without and with pipelining, in seconds; of some it says only what they do not exceed.
    PAPER = {"1200x77" => %w[27 8], "256x100" => ["30", nil], "16000x100" => ["at most 50", nil]}.freeze

    def groups = links.product(sheets).map { |link, sheet| entrants.map { |name| of(link, sheet, name) } }

    def tables(results)
      columns = links.product(entrants)
      rows = sheets.map do |sheet|
        [sheet.sub("x", " B × "), *PAPER.fetch(sheet, [nil, nil]).map { |seconds| seconds || "–" },
          *columns.map { |link, name| show(results.spread(of(link, sheet, name), SECONDS), 1) }]
      end
      [Table.new(title: "Seconds", rows: rows, head: ["Images", "the paper, without", "with", *columns.map { |link, name| "#{title_of(name)}, #{link}" }])]
    end

    private

    def of(link, sheet, name)
      size, count = sheet.split("x")
      cell("#{link} #{YARDSTICK} #{size}", name, Integer(count))
    end
  end
end
