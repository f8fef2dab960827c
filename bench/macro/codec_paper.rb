# frozen_string_literal: true

require_relative "../codec/cells"

module Bench
  class CodecPaper < Scenario
    include CodecCells

    title "The paper's table"
    order 70
    about <<~TEXT
      A Rails action answers with one large, nested Hash, as JSON or as MessagePack. It is compressed by the application, as in the paper: an
      `after_action` with `ActiveSupport::Gzip` at its level of 6, each response anew; by Hikyaku's middleware; by the middleware with its
      cache, which finds the repeated response; by nginx, with the types of MessagePack added and its other defaults, so at level 1; by the
      middleware behind the same nginx, which only passes on; or not at all. The middleware's level makes bodies as small as nginx's. JSON is
      that of Rails without Hikyaku's codec. MessagePack is `render msgpack:`, and beside it the paper's `to_msgpack`. The paper had Passenger
      in nginx, other machines, JSON by oj, and, as its times show, 300 clients.
    TEXT
    entrants(*CodecServer::PAIRS.map { |names| names.join("-") },
      quick: %w[json-none json-application json-middleware json-nginx msgpack-none msgpack-application msgpack-middleware msgpack-cache msgpack-nginx])

    PAYLOAD = "paper"
    # Samples, milliseconds as in the table, responses and KB a second.
    PAPER = {
      "oj-application" => [48_626, 1_816, 1_805, 2_002, 25, 2_258, 158.57, 306.30], "mpac-application" => [271_372, 317, 321, 356, 5, 533, 889.05, 1_701.66],
      "oj-nginx" => [48_824, 1_785, 1_775, 1_988, 27, 2_206, 159.11, 393.07], "mpac-nginx" => [333_783, 249, 248, 279, 4, 466, 1_093.61, 2_395.42],
      "mpac-none" => [346_175, 246, 246, 271, 6, 610, 1_134.33, 19_178.19]
    }.freeze
    COLUMNS = %w[mean median p90 min max].map { |time| ["#{time}, ms", "#{"latency_ms." unless time == "p90"}#{time}:1"] }.freeze
    MIN_OVER_JSON = {"none" => 1.5, "nginx" => 1.3}.freeze
    MAX_OVER_NGINX = 1.1
    MIN_REPEATED = 5

    def groups = [entrants.map { |name| own(name) }]

    # Sizes come first: at any price a body can be made smaller.
    def targets
      over_nginx = %w[json msgpack].product(%w[middleware behind]).map { |names| names.join("-") }.flat_map do |name|
        nginx = beside(name, "nginx")
        [compared("bytes of the body over nginx's", name, nginx, BODY, at_most: 1),
          compared("CPU per response over nginx's, the body as small", name, nginx, CPU, at_most: MAX_OVER_NGINX)]
      end
      over_json = MIN_OVER_JSON.map do |way, least|
        compared("responses a second over JSON's, #{CodecServer::WAYS.fetch(way)}", "msgpack-#{way}", "json-#{way}", PER_SECOND, at_least: least)
      end
      repeated = %w[json msgpack].map do |format|
        compared("repeated response that is serialised each time, responses a second over the paper's way", "#{format}-cache", "#{format}-application", PER_SECOND,
          at_least: MIN_REPEATED)
      end
      [*over_json, *over_nginx, *repeated].compact
    end

    def tables
      its = ["Response", :title]
      paper = PAPER.map do |name, figures|
        base = name.sub("mpac", "oj")
        [title_of(name), *figures.map { |figure| Bench.grouped(figure) }, PAPER.key?(base) ? format("%.2f", figures[-2] / PAPER.fetch(base)[-2]) : "–",
          *[name, name.sub("mpac", "msgpack")].map { |one| show(ratio(own(one), own(base), PER_SECOND)) }]
      end
      compressing = cells.reject { |one| one.entrant.end_with?("-none") }
      [
        table("As the paper has it", [its, ["samples", "responses:0"], *COLUMNS, ["responses a second", "#{PER_SECOND}:0"], ["KB a second", "kb_per_second:0"],
          ["bytes of the body", "#{BODY}:0"], ["CPU µs per response", "#{CPU}:0"], *busy]),
        Table.new("The paper's figures", ["Response", "samples", *COLUMNS.map(&:first), "responses a second", "KB a second", "over JSON by oj, the paper", "here",
          "here, render msgpack:"], paper),
        table("What compressing adds", [its, ["CPU µs per response", ->(one) { show(added(one, &:itself), 0) }], ["the paper's way over it", ->(one) { paper_over(one) }],
          ["responses a second over the paper's way", ->(one) { ratio(one, own(beside(one.entrant, "application")), PER_SECOND) }]], compressing)
      ]
    end

    def plots
      bars("codec-rates.svg", PER_SECOND, title: "Responses a second, the paper's kind of answer", unit: "#{clients} clients")
        .merge(bars("codec-cpu.svg", CPU, title: "CPU of all processes per response", unit: "µs"))
    end

    private

    def own(name) = of(PAYLOAD, name)

    def compared(words, name, other, path, **bound)
      ratio_target(words, own(name), own(other), path, **bound) if among(name, other).size == 2
    end

    # The CPU beyond that of the same response that is not compressed.
    def added(one, *others)
      combine([one, *others, own(beside(one.entrant, "none"))], CPU) { |*cpu, plain| yield(*cpu.map { |its| its - plain }) }
    end

    # How often the CPU that compressing adds is contained in that of the paper's way.
    def paper_over(one) = added(one, own(beside(one.entrant, "application"))) { |its, papers| papers / its if its.positive? }
  end
end
