# frozen_string_literal: true

require "json"
require_relative "../client"

module Hikyaku
  module CLI
    class Doctor < Client
      # What was found, as it is found: a list to read, or lines of JSON.
      class Report
        LEVELS = {ok: "ok", warn: "warn", fail: "FAIL", skip: "-"}.freeze
        # Of the level, and of the name.
        WIDTHS = [6, 15].freeze
        private_constant :LEVELS, :WIDTHS

        def initialize(out, json:)
          @out = out
          @json = json
          @counts = Hash.new(0)
        end

        def add(finding)
          @counts[finding.level] += 1
          @out.puts(@json ? JSON.generate(finding.to_h) : lines(finding))
          @out.flush
        end

        def finish(stopped)
          return if @json
          @out.puts("", "#{summary}#{"; the rest was not checked, because #{stopped}" if stopped}")
        end

        def code(strict:) = (@counts[:fail].positive? || (strict && @counts[:warn].positive?)) ? 1 : 0

        private

        def lines(finding)
          indent = " " * (WIDTHS.sum + 2)
          ["#{LEVELS.fetch(finding.level).ljust(WIDTHS[0])}#{finding.check.ljust(WIDTHS[1])}#{CLI.printable(finding.message)}",
            *finding.advice.map { |line| "#{indent}#{line}" }]
        end

        def summary
          parts = {fail: "failed", warn: "to look at", ok: "well", skip: "not checked"}
          parts.filter_map { |level, words| "#{@counts[level]} #{words}" if @counts[level].positive? }.join(", ")
        end
      end
    end
  end
end
