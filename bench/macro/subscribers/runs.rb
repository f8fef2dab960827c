# frozen_string_literal: true

require "rbconfig"
require_relative "../../harness/entrants"
require_relative "../../harness/load"
require_relative "../../harness/server"

module Bench
  module Subscribers
    # One run: how many subscribers, their figures, and those of the ordinary requests while they were silent ("idle")
    # and while updates went out ("publishing").
    Run = Struct.new(:subscribers, :round, :figures, :requests, keyword_init: true)

    # Runs each number of subscribers, round after round, each in a fresh process.
    class Runs
      THREADS = 5
      # Milliseconds around a measurement of ordinary requests, for it to begin and end within its phase.
      MARGIN_MS = 1_500

      # @param options [Options]
      def initialize(options)
        @options = options
      end

      # @yieldparam line [String] what came out
      # @return [Array<Run>]
      def call(&progress)
        numbers = @options.rounds.times.flat_map { |round| @options.subscribers.map { |n| [n, round] } }
        numbers.map do |subscribers, round|
          run = measure(subscribers, round)
          progress&.call(line(run))
          run
        end
      end

      private

      def measure(subscribers, round)
        port = Server.free_port
        run = Run.new(subscribers: subscribers, round: round, requests: {})
        Server.run(puma(port), port: port, env: environment(port)) do |server|
          phases = Queue.new
          asking = Thread.new { 2.times { ask(port, phases.pop, run) } }
          run.figures = publish(port, server, subscribers) { |phase| phases << phase }
          asking.value
        end
        run
      end

      def publish(port, server, subscribers, &on_phase)
        Load.run(port: port, pid: server.pid, subscribers: subscribers, rate: @options.rate,
          messages: @options.rate * @options.seconds + @options.rate * MARGIN_MS / 1_000,
          settle: @options.seconds * 1_000 + MARGIN_MS, **Entrants::HIKYAKU.load.call(port), &on_phase)
      end

      def ask(port, phase, run)
        run.requests[(phase == "connected") ? "idle" : "publishing"] = Load.run(port: port, subscribers: 0, settle: 0,
          method: "GET", publish_path: "/ordinary", publishers: @options.connections, rate: @options.requests,
          messages: @options.requests * @options.seconds)
      end

      def puma(port)
        [RbConfig.ruby, Gem.bin_path("puma", "puma"), "--bind", "tcp://127.0.0.1:#{port}", "--threads", "#{THREADS}:#{THREADS}",
          "--environment", "production", "--quiet", File.expand_path("../subscribers.ru", __dir__)]
      end

      def environment(port)
        {"BENCH_LISTEN" => "127.0.0.1:#{port}", "BENCH_ISSUER" => Token::ISSUER, "BENCH_KEY" => Token::KEY}
      end

      def line(run)
        times = run.requests.map { |state, figures| format("%s median %.2f ms", state, figures["publish"]["answer_ms"]["median"]) }
        format("round %d  %6d subscribers, %d lost  ordinary requests: %s", run.round + 1, run.figures["subscribers"],
          run.figures["dead"] + run.figures["delivery"]["lost"], times.join(", "))
      end
    end
  end
end
