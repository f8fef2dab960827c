# frozen_string_literal: true

require "optparse"

module Bench
  module Subscribers
    # The command line of `bin/bench subscribers`.
    class Options
      attr_reader :subscribers, :rounds, :seconds, :rate, :requests, :connections, :out, :check

      # Ends the program after --help, or with status 2 and one line after a mistake.
      def self.parse(arguments) = new.tap { |options| options.read(arguments) }

      def initialize
        @subscribers = [0, 5_000, 10_000]
        @rounds = 3
        @seconds = 5
        @rate = 4
        @requests = 200
        @connections = 5
        @out = File.expand_path("../../results", __dir__)
      end

      def read(arguments)
        rest = parser.parse(arguments)
        raise OptionParser::InvalidArgument, rest.join(" ") unless rest.empty?
      rescue OptionParser::ParseError => error
        warn "bench subscribers: #{error.message} (see bin/bench subscribers --help)"
        exit 2
      end

      def to_h
        {"subscribers" => subscribers, "rounds" => rounds, "seconds" => seconds, "updates_per_second" => rate,
         "requests_per_second" => requests, "connections" => connections}
      end

      private

      def parser
        OptionParser.new do |o|
          o.banner = "usage: bin/bench subscribers [options]"
          o.on("--subscribers LIST", Array, "numbers of subscribers (0,5000,10000)") { |list| @subscribers = list.map { |n| Integer(n) } }
          o.on("--rounds N", Integer, "rounds (3)") { |n| @rounds = n }
          o.on("--seconds N", Integer, "of each measurement (5)") { |n| @seconds = n }
          o.on("--rate N", Integer, "updates a second, each to all subscribers (4)") { |n| @rate = n }
          o.on("--requests N", Integer, "ordinary requests a second (200)") { |n| @requests = n }
          o.on("--connections N", Integer, "connections that make them (5)") { |n| @connections = n }
          o.on("--out DIR", "where the results go (bench/results)") { |dir| @out = dir }
          o.on("--check", "exit with 1 when the target is missed") { @check = true }
        end
      end
    end
  end
end
