# frozen_string_literal: true

require "json"
require "open3"
require_relative "build"
require_relative "dependencies"
require_relative "server"

module Bench
  # Runs a load generator on its own core.
  module Load
    CORE = 1
    PHASES = %w[connected publishing published].freeze

    # The load generator did not end as it should.
    class Failed < StandardError
    end

    class << self
      # @param program [String] "load" for hubs, "queue_load" for brokers, "node" for hubs with the clients of bench/node
      # @param options [Hash] the generator's options: `subscribers: 10, sync: true, subscribe_header: ["A: b"]`
      # @yieldparam phase [String] one of {PHASES}, when it begins; the load continues meanwhile
      # @return [Hash] figures, and "whole": whether nothing was lost or refused
      # @raise [Failed] with the generator's output
      def run(program: "load", within: [], **options, &on_phase)
        executable = (program == "node") ? NodePackages::COMMAND : [Build.program(program)]
        report([*within, *Server.pinned(CORE, *executable), *options.flat_map { |name, value| flag(name, value) }], &on_phase)
      end

      # The same for any command that prints its phases, and its figures at the end.
      def report(command, &on_phase)
        out, errors, status = follow(command, on_phase)
        figures = JSON.parse(out)
        warn errors unless status.success?
        figures.merge("whole" => status.success?)
      rescue JSON::ParserError
        raise Failed, "the load generator gave no figures: #{errors}"
      end

      private

      def follow(command, on_phase)
        Open3.popen3(*command, rlimit_nofile: Process.getrlimit(:NOFILE).last) do |input, out, err, process|
          input.close
          figures = Thread.new { out.read }
          errors = +""
          err.each_line do |line|
            errors << line
            on_phase&.call(line.chomp) if PHASES.include?(line.chomp)
          end
          [figures.value, errors, process.value]
        end
      end

      def flag(name, value)
        option = "--#{name.to_s.tr("_", "-")}"
        case value
        when nil, false then []
        when true then [option]
        else Array(value).flat_map { |one| [option, one.to_s] }
        end
      end
    end
  end

  # A running server, and the loads that are put on it one after another.
  class Stage
    attr_reader :server

    # @param warmup [Hash] the first load: what the server loads and allocates then is not measured
    # @param options [Hash] of every load
    def initialize(server, warmup, **options)
      @server = server
      @warmup = warmup
      @options = options
      @whole = true
    end

    def wake = load(**@warmup)

    # @param prefix [String, nil] names the queues of an earlier load of a broker
    def load(prefix: nil, **options, &on_phase)
      @loads = @loads.to_i + 1
      names = (@options[:program] == "queue_load") ? {prefix: prefix || "bench#{@loads}"} : {}
      figures = Load.run(port: server.port, pid: server.pids, **@options, **names, **options, &on_phase)
      @whole &&= figures["whole"]
      figures
    end

    # Whether no load lost anything or got anything wrong.
    def whole? = @whole
  end
end
