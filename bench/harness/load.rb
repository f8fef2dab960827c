# frozen_string_literal: true

require "json"
require "open3"
require_relative "build"
require_relative "node"

module Bench
  # Runs a load generator on its own core.
  module Load
    CORE = 1
    PHASES = %w[connected publishing published].freeze
    NODE = "node"

    # A load that did not end as it should.
    class Failed < StandardError
    end

    class << self
      # @param program [String] "load" for hubs, "queue_load" for brokers, "node" for hubs, with the clients of bench/node
      # @param within [Array<String>] what is to run it: in another network, say
      # @param options [Hash] the generator's options by name: `subscribers: 10, sync: true, subscribe_header: ["A: b"]`
      # @yieldparam phase [String] one of {PHASES}, each when it begins; the load goes on meanwhile
      # @return [Hash] its figures, and under "whole" whether nothing was lost or refused
      # @raise [Failed] with what it said
      def run(program: "load", within: [], **options, &on_phase)
        flags = options.flat_map { |name, value| flag(name, value) }
        report([*within, Build.program("pin"), CORE.to_s, *executable(program), *flags], &on_phase)
      end

      # Runs any program that says its phases, and at the end gives its figures.
      #
      # @param command [Array<String>]
      # @yieldparam phase [String] see {.run}
      # @return [Hash] see {.run}
      # @raise [Failed] with what it said
      def report(command, &on_phase)
        out, said, status = follow(command, on_phase)
        figures = JSON.parse(out)
        warn said unless status.success?
        figures.merge("whole" => status.success?)
      rescue JSON::ParserError
        raise Failed, "the load generator gave no figures: #{said}"
      end

      private

      def follow(command, on_phase)
        Open3.popen3(*command, rlimit_nofile: Process.getrlimit(:NOFILE).last) do |input, out, err, process|
          input.close
          figures = Thread.new { out.read }
          said = +""
          err.each_line do |line|
            said << line
            on_phase&.call(line.chomp) if PHASES.include?(line.chomp)
          end
          [figures.value, said, process.value]
        end
      end

      def executable(program) = (program == NODE) ? Node.command : [Build.program(program)]

      def flag(name, value)
        option = "--#{name.to_s.tr("_", "-")}"
        case value
        when nil, false then []
        when true then [option]
        when Array then value.flat_map { |one| [option, one.to_s] }
        else [option, value.to_s]
        end
      end
    end
  end
end
