# frozen_string_literal: true

require "json"
require_relative "addition"
require_relative "results"

module Bench
  # The file of every run: written with one run a line, and read again to make the page anew.
  module Record
    class << self
      # @param head [Hash] what stands before the runs
      # @param results [Hash{Scenario => Results}]
      # @param additions [Array<Addition>]
      # @return [String] JSON
      def dump(head, results, additions: [])
        parts = head.map { |name, value| "#{JSON.generate(name)}: #{JSON.pretty_generate(value)}" }
        parts << "\"apart\": [\n#{additions.map { |its| dump(its.head, its.results).chomp }.join(",\n")}\n]" if additions.any?
        parts << "\"scenarios\": {\n#{results.map { |scenario, its| scenario_text(scenario, its) }.join(",\n")}\n}"
        "{\n#{parts.join(",\n")}\n}\n"
      end

      # @param text [String] of {.dump}
      # @return [Array(Hash, Hash{Scenario => Results}, Array<Addition>)] head, results, and what was measured apart
      def load(text)
        head = JSON.parse(text)
        additions = head.delete("apart").to_a.map { |its| Addition.new(its, results_of(its)) }
        [head, results_of(head), additions]
      end

      private

      # Takes them out of the head.
      def results_of(head)
        classes = Scenario.all.to_h { |scenario| [scenario.key, scenario] }
        head.delete("scenarios").to_h do |key, its|
          scenario = classes.fetch(key).new(entrants: its["entrants"], values: its["settings"].transform_keys(&:to_sym))
          [scenario, Results.new(its["runs"].map { |run| Run.of(run) })]
        end
      end

      def scenario_text(scenario, results)
        runs = results.runs.map { |run| JSON.generate(run.to_h) }.join(",\n")
        settings = {"entrants" => scenario.entrants, "settings" => scenario.values}
        "#{JSON.generate(scenario.class.key)}: #{JSON.generate(settings).delete_suffix("}")}, \"runs\": [\n#{runs}\n]}"
      end
    end
  end
end
