# frozen_string_literal: true

require_relative "../../harness/entrants"
require_relative "../../harness/load"
require_relative "../../harness/server"

module Bench
  module Fanout
    # One run: which test, who, how many subscribers, in which round, and the load generator's figures.
    Run = Struct.new(:test, :entrant, :subscribers, :round, :figures, keyword_init: true)

    # Runs every test with every entrant, round after round, so that what disturbs the machine disturbs all.
    #
    # - "fanout": one update at a time to N subscribers of one topic.
    # - "one": many publishers, a single subscriber.
    # - "topics": the same, with N subscribers each on a topic of its own.
    class Runs
      WARMUP_SHARE = 10

      # @param options [Options]
      def initialize(options)
        @options = options
      end

      # @yieldparam line [String] what is being measured, and what came out
      # @return [Array<Run>] in the order in which they ran
      def call(&progress)
        steps.each_with_index.map do |run, index|
          run.figures = measure(run)
          progress&.call(line(run, index))
          run
        end
      end

      private

      def steps
        @steps ||= @options.rounds.times.flat_map { |round| fanout_steps(round) + topic_steps(round) }
      end

      # Each round begins with another entrant: none always runs on a machine that is just warm, or just tired.
      def fanout_steps(round)
        @options.subscribers.flat_map do |subscribers|
          entrants.rotate(round).map { |entrant| Run.new(test: "fanout", entrant: entrant, subscribers: subscribers, round: round) }
        end
      end

      def topic_steps(round)
        return [] if @options.topics.zero?
        one = entrants.map { |entrant| Run.new(test: "one", entrant: entrant, subscribers: 1, round: round) }
        one + [Run.new(test: "topics", entrant: Entrants::HIKYAKU, subscribers: @options.topics, round: round)]
      end

      def entrants
        [Entrants::FLOOR, Entrants::HIKYAKU, *(@options.peers ? Entrants::PEERS : [])]
      end

      def measure(run)
        port = Server.free_port
        load = {port: port, size: @options.size, **run.entrant.load.call(port)}
        Server.run(run.entrant.command.call(port), port: port) do |server|
          woken = wake(load)
          figures = Load.run(pid: server.pid, subscribers: run.subscribers, **load, **shape(run))
          figures.merge("whole" => figures["whole"] && woken["whole"], "dead" => figures["dead"] + woken["dead"])
        end
      end

      # What a server loads and allocates with its first requests is not the cost of a connection.
      def wake(load)
        Load.run(subscribers: 20, messages: 5, settle: 50, **load)
      end

      def shape(run)
        if run.test == "fanout"
          messages = @options.messages_for(run.subscribers)
          {messages: messages, warmup: messages / WARMUP_SHARE + 1, sync: true}
        else
          {messages: @options.publishes, warmup: @options.publishes / WARMUP_SHARE, publishers: @options.publishers,
           topics: run.subscribers}
        end
      end

      def line(run, index)
        figures = run.figures
        format("%3d/%d  round %d  %-6s %6d subscribers  %-8s %8.2f µs of CPU a delivery  %7.0f publishes/s%s",
          index + 1, steps.size, run.round + 1, run.test, run.subscribers, run.entrant.name,
          figures["delivery"]["cpu_us_each"], figures["publish"]["per_second"], figures["whole"] ? "" : "  INCOMPLETE")
      end
    end
  end
end
