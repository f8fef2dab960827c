# frozen_string_literal: true

require "tempfile"
require_relative "../harness/scenario"

module Bench
  class Connects < Scenario
    title "Connecting"
    order 3
    about <<~TEXT
      How fast subscribers get their stream, all at once: first, and again on the same server after all have gone.
      Anonymous, and with an access token each, every one different, in the Authorization header; the tokens are made
      beforehand. Where the load was busy all the time and the server was not, the server can do more than is said
      here: then look at its CPU. The floor, which answers without looking, shows how far the load itself goes.
    TEXT
    entrants "floor", "hikyaku-c", "hikyaku-ruby", "nchan"
    setting :subscribers, 10_000, quick: 1_000, about: "subscribers"

    HUBS = %w[hikyaku-c hikyaku-ruby].freeze
    LEAST_OVER_NCHAN = 1
    LEAST_WITH_TOKENS = 2_000
    LEAST_AGAIN = 0.8
    PASSES = %w[first again].freeze
    # The load generator has then seen each of them answered, and nobody is to publish.
    SHAPE = {messages: 0, settle: 300}.freeze

    def groups
      anonymous = entrants.map { |name| of("anonymous", name) }
      [anonymous, *Token::ALGORITHMS.map { |alg| among(HUBS).map { |name| of(alg, name) } }].reject(&:empty?)
    end

    def measure(cell)
      with_headers(cell.test) do |headers|
        on_stage(cell.entrant) do |stage|
          PASSES.to_h do |pass|
            stage.server.rest
            [pass, stage.load(subscribers: cell.size, **SHAPE, **headers)]
          end
        end
      end
    end

    def headline(figures)
      format("%.0f/s, %.0f µs of CPU each; again %.0f/s", *%w[per_second cpu_us_each].map { |name| figures.dig("first", "connect", name) },
        figures.dig(*path("again")))
    end

    def targets(results)
      hub = "hikyaku-c"
      anonymous = of("anonymous", hub)
      [
        results.ratio_target("connects per second over Nchan's, anonymous", anonymous, of("anonymous", "nchan"), *path("first"),
          at_least: LEAST_OVER_NCHAN),
        *Token::ALGORITHMS.flat_map do |alg|
          tokens = "#{subscribers} different tokens, #{alg}"
          [
            results.target("connects per second the first time, #{tokens}", of(alg, hub), *path("first"), at_least: LEAST_WITH_TOKENS),
            results.ratio_target("connects per second again, #{tokens}, over anonymous", of(alg, hub), anonymous, *path("again"),
              at_least: LEAST_AGAIN)
          ]
        end
      ]
    end

    def tables(results)
      rows = groups.flatten.product(PASSES).map do |its, pass|
        [title_of(its.entrant), its.test, pass, show(results.spread(its, *path(pass)), 0),
          *["nchan", its.entrant].map { |name| show(results.ratio(its, of("anonymous", name), *path(pass))) },
          show(results.spread(its, pass, "connect", "cpu_us_each"), 1),
          show(results.ratio(its, of("anonymous", "nchan"), pass, "connect", "cpu_us_each")), *busy(results, its, pass, "connect")]
      end
      [Table.new(title: "#{subscribers} subscribers at once", rows: rows,
        head: ["Server", "Token", "Time", "connects per second", "over Nchan's, anonymous", "over its own, anonymous",
          "CPU µs per connect", "over Nchan's", *BUSY])]
    end

    def plots(results)
      figures = groups.flatten.to_h { |its| ["#{title_of(its.entrant)}, #{its.test}", results.spread(its, *path("first"))] }
      bars("connects.svg", figures, title: "Connects, the first time", unit: "a second")
    end

    private

    def of(test, name) = cell(test, name, subscribers)

    def path(pass) = [pass, "connect", "per_second"]

    def with_headers(test)
      return yield({}) unless Token::ALGORITHMS.include?(test)
      Tempfile.create("bench-tokens") do |file|
        file.puts(Token.subscribers(test, subscribers).map { |token| "Authorization: Bearer #{token}" })
        file.flush
        yield({subscribe_header_file: file.path})
      end
    end
  end
end
