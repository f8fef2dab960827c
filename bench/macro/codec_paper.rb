# frozen_string_literal: true

require_relative "../codec/cells"
require_relative "../harness/codec_conclusion"

module Bench
  class CodecPaper < Scenario
    include CodecCells

    title "The paper's table"
    order 70
    about <<~TEXT
      A Rails action answers one large, nested Hash, as JSON or as MessagePack. It is compressed by the application, as in the paper: an
      `after_action` with `ActiveSupport::Gzip`, every response anew, at its level of 6; by Hikyaku's middleware; by the same with its cache, which the
      repeated answer is found in; by nginx, with the types of MessagePack added and all else as it comes, so at level 1; by the middleware
      behind the same nginx, which only passes on; or not at all. The middleware's level is the one that makes bodies as small as nginx does.
      JSON is that of Rails without Hikyaku's codec. MessagePack is `render msgpack:`, and beside it what the paper had, `to_msgpack`.
      The paper had Passenger in nginx, other machines, JSON by oj, and, as its times say, 300 clients.
    TEXT
    entrants(*CodecServer.pairs.map { |names| names.join("-") },
      quick: %w[json-none json-application json-middleware json-nginx msgpack-none msgpack-application msgpack-middleware msgpack-cache msgpack-nginx])

    PAYLOAD = "paper"
    TIMES = %w[mean median p90 min max].freeze
    # Samples, milliseconds as above, responses and KB a second.
    PAPER = {
      "oj-application" => [48_626, 1_816, 1_805, 2_002, 25, 2_258, 158.57, 306.30],
      "mpac-application" => [271_372, 317, 321, 356, 5, 533, 889.05, 1_701.66],
      "oj-nginx" => [48_824, 1_785, 1_775, 1_988, 27, 2_206, 159.11, 393.07],
      "mpac-nginx" => [333_783, 249, 248, 279, 4, 466, 1_093.61, 2_395.42],
      "mpac-none" => [346_175, 246, 246, 271, 6, 610, 1_134.33, 19_178.19]
    }.freeze
    # MessagePack over JSON, responses a second.
    LEAST_OVER_JSON = {"none" => 1.5, "nginx" => 1.3}.freeze
    MOST_OVER_NGINX = 1.1
    LEAST_REPEATED = 5
    OURS = %w[middleware behind].freeze
    COMPARED = %w[json msgpack].freeze

    def groups = [entrants.map { |name| of(PAYLOAD, name) }]

    def targets(results) = over_json(results) + over_nginx(results) + repeated(results)

    def tables(results) = [table(results), beside_the_paper(results), compressing(results)]

    def plots(results)
      rates = entrants.to_h { |name| [title_of(name), results.spread(of(PAYLOAD, name), PER_SECOND)] }
      cpu = entrants.to_h { |name| [title_of(name), results.spread(of(PAYLOAD, name), CPU)] }
      bars("codec-rates.svg", rates, title: "Responses a second, the paper's kind of answer", unit: "#{clients} clients")
        .merge(bars("codec-cpu.svg", cpu, title: "CPU of all processes per response", unit: "µs"))
    end

    private

    def over_json(results)
      LEAST_OVER_JSON.filter_map do |way, least|
        names = among("msgpack-#{way}", "json-#{way}")
        next if names.size < 2
        results.ratio_target("responses a second over JSON's, #{CodecServer::WAYS.fetch(way)}", *cells("msgpack-#{way}", "json-#{way}"), PER_SECOND,
          at_least: least)
      end
    end

    # The sizes are told first: at any price a body can be made smaller.
    def over_nginx(results)
      COMPARED.product(OURS).map { |names| names.join("-") }.flat_map do |name|
        nginx = beside(name, "nginx")
        next [] if among(name, nginx).size < 2
        [results.ratio_target("bytes of the body over nginx's", *cells(name, nginx), BODY, at_most: 1),
          results.ratio_target("CPU per response over nginx's, the body as small", *cells(name, nginx), CPU, at_most: MOST_OVER_NGINX)]
      end
    end

    def repeated(results)
      COMPARED.filter_map do |format|
        names = ["#{format}-cache", "#{format}-application"]
        next if among(names).size < 2
        results.ratio_target("repeated response that is serialised each time, responses a second over the paper's way", *cells(*names), PER_SECOND,
          at_least: LEAST_REPEATED)
      end
    end

    def cells(*names) = names.map { |name| of(PAYLOAD, name) }

    def table(results)
      rows = entrants.map do |name|
        its = of(PAYLOAD, name)
        [title_of(name), show(results.spread(its, "responses"), 0), *TIMES.map { |time| show(time_of(results, its, time), 1) },
          show(results.spread(its, PER_SECOND), 0), show(results.spread(its, "kb_per_second"), 0), show(results.spread(its, BODY), 0),
          show(results.spread(its, CPU), 0), *busy(results, its)]
      end
      Table.new(title: "As the paper has it", rows: rows,
        head: ["Response", "samples", *TIMES.map { |time| "#{time}, ms" }, "responses a second", "KB a second", "bytes of the body",
          "CPU µs per response", *BUSY])
    end

    def time_of(results, its, time) = (time == "p90") ? results.spread(its, time) : results.spread(its, "latency_ms", time)

    def beside_the_paper(results)
      rows = PAPER.map do |name, figures|
        base = name.sub("mpac", "oj")
        [title_of(name), *figures.map { |figure| Digits.grouped(figure) }, PAPER.key?(base) ? format("%.2f", figures[-2] / PAPER.fetch(base)[-2]) : "–",
          show(results.ratio(*cells(name, base), PER_SECOND)), show(results.ratio(*cells(name.sub("mpac", "msgpack"), base), PER_SECOND))]
      end
      Table.new(title: "The paper's figures", rows: rows,
        head: ["Response", "samples", *TIMES.map { |time| "#{time}, ms" }, "responses a second", "KB a second", "over JSON by oj, the paper", "here",
          "here, render msgpack:"])
    end

    # What the same answer costs when it is not compressed is taken off.
    def compressing(results)
      rows = entrants.reject { |name| name.end_with?("-none") }.map do |name|
        [title_of(name), show(added(results, PAYLOAD, name), 0), show(paper_over(results, name)),
          show(results.ratio(*cells(name, beside(name, "application")), PER_SECOND))]
      end
      Table.new(title: "What compressing adds", rows: rows,
        head: ["Response", "CPU µs per response", "the paper's way over it", "responses a second over the paper's way"])
    end

    # How often what the paper's way adds holds what this adds.
    def paper_over(results, name)
      results.combine(cells(name, beside(name, "application"), beside(name, "none")), CPU) do |own, application, plain|
        (application - plain) / (own - plain) if own > plain
      end
    end
  end
end
