# frozen_string_literal: true

require "tempfile"
require_relative "../harness/scenario"

module Bench
  class Connects < Scenario
    title "Connecting"
    order 3
    about <<~TEXT
      How fast subscribers get their streams, all at once: first, and again on the same server after all have left. They are anonymous,
      or each has a different access token in the Authorization header; the tokens are made before. Where the load was busy all the time
      and the server was not, the server can do more than the rate: then look at its CPU. The floor, which answers without checks, shows
      the limit of the load.
    TEXT
    headline "%.0f/s, %.0f µs of CPU each; again %.0f/s", "first.connect.per_second", "first.connect.cpu_us_each", "again.connect.per_second"
    entrants "floor", "hikyaku-c", "hikyaku-ruby", "nchan"
    setting :subscribers, 10_000, quick: 1_000, about: "subscribers"

    HUBS = %w[hikyaku-c hikyaku-ruby].freeze
    MIN_OVER_NCHAN = 1
    MIN_WITH_TOKENS = 2_000
    MIN_AGAIN = 0.8
    PASSES = %w[first again].freeze
    FIRST, AGAIN = PASSES.map { |pass| "#{pass}.connect.per_second" }

    def groups
      [entrants.map { |name| of("anonymous", name) }, *Token::ALGORITHMS.map { |alg| among(HUBS).map { |name| of(alg, name) } }].reject(&:empty?)
    end

    def measure(cell)
      with_headers(cell.test) do |headers|
        on_stage(cell.entrant) do |stage|
          PASSES.to_h do |pass|
            stage.server.rest
            [pass, stage.load(subscribers: cell.size, messages: 0, settle: 300, **headers)]
          end
        end
      end
    end

    def targets
      hub = "hikyaku-c"
      anonymous = of("anonymous", hub)
      [ratio_target("connects per second over Nchan's, anonymous", anonymous, of("anonymous", "nchan"), FIRST, at_least: MIN_OVER_NCHAN),
        *Token::ALGORITHMS.flat_map { |alg|
          tokens = "#{subscribers} different tokens, #{alg}"
          [target("connects per second the first time, #{tokens}", of(alg, hub), FIRST, at_least: MIN_WITH_TOKENS),
            ratio_target("connects per second again, #{tokens}, over anonymous", of(alg, hub), anonymous, AGAIN, at_least: MIN_AGAIN)]
        }]
    end

    def tables
      rows = cells.product(PASSES).map do |its, pass|
        rate, cpu, nchan = "#{pass}.connect.per_second", "#{pass}.connect.cpu_us_each", of("anonymous", "nchan")
        [title_of(its.entrant), its.test, pass, content(its, "#{rate}:0"), *[nchan, of("anonymous", its.entrant)].map { |other| show(ratio(its, other, rate)) },
          content(its, "#{cpu}:1"), show(ratio(its, nchan, cpu)), *busy("#{pass}.connect").map { |_, column| column.call(its) }]
      end
      [Table.new("#{subscribers} subscribers at once", ["Server", "Token", "Time", "connects per second", "over Nchan's, anonymous", "over its own, anonymous",
        "CPU µs per connect", "over Nchan's", "server busy", "load busy"], rows)]
    end

    def plots = bars("connects.svg", FIRST, title: "Connects, the first time", unit: "a second") { |its| "#{title_of(its.entrant)}, #{its.test}" }

    private

    def of(test, name) = cell(test, name, subscribers)

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
