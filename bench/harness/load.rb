# frozen_string_literal: true

require "json"
require "open3"
require_relative "build"

module Bench
  # Runs the load generator on its own core.
  module Load
    CORE = 1

    # A load that did not end as it should.
    class Failed < StandardError
    end

    class << self
      # @param options [Hash] the generator's options by name: `subscribers: 10, sync: true, subscribe_header: ["A: b"]`
      # @return [Hash] its figures, and under "whole" whether nothing was lost or refused
      # @raise [Failed] with what it said
      def run(**options)
        out, err, status = Open3.capture3(*command(options), rlimit_nofile: Process.getrlimit(:NOFILE).last)
        figures = JSON.parse(out)
        warn err unless status.success?
        figures.merge("whole" => status.success?)
      rescue JSON::ParserError
        raise Failed, "the load generator gave no figures: #{err}"
      end

      private

      def command(options)
        [Build.program("pin"), CORE.to_s, Build.program("load"), *options.flat_map { |name, value| flag(name, value) }]
      end

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
