# frozen_string_literal: true

require "optparse"

module Bench
  module Fanout
    # The command line of `bin/bench fanout`.
    class Options
      attr_accessor :subscribers, :messages, :rounds, :size, :publishers, :publishes, :topics, :peers, :out, :check

      # Ends the program after --help, or with status 2 and one line after a mistake.
      def self.parse(arguments) = new.tap { |options| options.read(arguments) }

      def initialize
        @subscribers = [100, 1_000, 10_000]
        @rounds = 5
        @size = 200
        @publishers = 32
        @publishes = 20_000
        @topics = 10_000
        @peers = false
        @out = File.expand_path("../../results", __dir__)
      end

      def read(arguments)
        rest = parser.parse(arguments)
        raise OptionParser::InvalidArgument, rest.join(" ") unless rest.empty?
      rescue OptionParser::ParseError => error
        warn "bench fanout: #{error.message} (see bin/bench fanout --help)"
        exit 2
      end

      # Enough messages for a figure that stands, few enough for a run of a second or two.
      def messages_for(subscribers) = messages || (100_000 / [subscribers, 1].max).clamp(20, 1_000)

      def to_h
        {"subscribers" => subscribers, "messages" => subscribers.map { |n| messages_for(n) }, "rounds" => rounds,
         "message_bytes" => size, "publishers" => publishers, "publishes" => publishes, "topics" => topics, "peers" => peers}
      end

      private

      def parser
        OptionParser.new do |o|
          o.banner = <<~TEXT
            usage: bin/bench fanout [options]

            Runs a bare send() loop and Hikyaku in turn, each on one core, the load on another; writes fanout.json, fanout.md
            and its plots.

                bin/bench fanout                              # the whole of it: some minutes
                bin/bench fanout --subscribers 100 --rounds 1 --topics 0   # a first look: seconds

          TEXT
          o.on("--subscribers LIST", Array, "numbers of subscribers (100,1000,10000)") { |list| @subscribers = list.map { |n| Integer(n) } }
          o.on("--messages N", Integer, "messages of a run (1,000 to 20, by the number of subscribers)") { |n| @messages = n }
          o.on("--rounds N", Integer, "rounds, each with every server (5)") { |n| @rounds = n }
          o.on("--size BYTES", Integer, "of a message (200)") { |n| @size = n }
          o.on("--publishers N", Integer, "connections that publish in the topic test (32)") { |n| @publishers = n }
          o.on("--publishes N", Integer, "messages of the topic test (20000)") { |n| @publishes = n }
          o.on("--topics N", Integer, "subscribers, each on a topic of its own; 0 leaves the topic test out (10000)") { |n| @topics = n }
          o.on("--peers", "also the plain servers of bench/peers") { @peers = true }
          o.on("--out DIR", "where the results go (bench/results)") { |dir| @out = dir }
          o.on("--check", "exit with 1 when a target is missed") { @check = true }
        end
      end
    end
  end
end
