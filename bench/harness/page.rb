# frozen_string_literal: true

require "fileutils"
require "pathname"
require_relative "addition"
require_relative "markdown"
require_relative "record"

module Bench
  # All that was measured as one page with tables and plots, and as JSON with every run.
  class Page
    NAME = "README.md"
    DATA = "results.json"
    # Where the last results of each suite are.
    RESULTS = File.expand_path("../results", __dir__)

    # @param results [Hash{Scenario => Results}]
    # @param facts [Hash{String => String}] of the machine
    # @param left_out [Hash{String => String}] entrants that could not take part, and why
    # @param notes [Hash] "command", "rounds", "interrupted"
    # @param additions [Array<Addition>]
    def initialize(results, facts:, left_out:, notes:, additions: [])
      @results = results
      @facts = facts
      @left_out = left_out
      @notes = notes
      @additions = additions
    end

    # @return [Boolean]
    def interrupted? = @notes["interrupted"]

    # @return [Array<Target>]
    def targets = @targets ||= @results.flat_map { |scenario, results| scenario.targets(results) } + @additions.flat_map(&:targets)

    # @return [String] in Markdown: targets, what is incomplete, and every table
    def tables
      sections = @results.map { |scenario, results| section(scenario, results) }
      [target_table, left_out, incomplete, *sections].compact.join("\n")
    end

    # @param directory [String]
    # @return [Array<String>] paths of the files written
    def write(directory)
      FileUtils.mkdir_p(directory)
      @folder = File.expand_path(directory)
      {NAME => to_s, DATA => json, **plots}.map { |name, text| File.join(directory, name).tap { |path| File.write(path, text) } }
    end

    # @return [String] the page
    def to_s
      <<~TEXT
        # #{suite.title}

        #{suite.about} Rounds: #{@notes["rounds"]}, each with
        every #{suite.who} in turn; no run is left out. A cell is the median of the rounds, then the least and the greatest. #{suite.reading}
        #{"\n**Interrupted: not all rounds are there.**\n" if interrupted?}
        Again with: `#{@notes["command"]}`. Every run: [#{DATA}](#{DATA}).#{apart}#{other_pages}

        #{Markdown.table(%w[What Value], [*@facts.to_a, *others])}
        #{conclusion}#{tables}
      TEXT
    end

    private

    def apart = (" Tables that were measured apart say so, when, and on what." if @additions.any?)

    # Those that are there, as seen from where this one is written; elsewhere than among the results, from where it would be.
    def other_pages
      folder = @folder&.start_with?("#{RESULTS}/") ? @folder : File.expand_path(suite.folder, RESULTS)
      pages = Suite::ALL.values.to_h { |other| [other.title, File.join(File.expand_path(other.folder, RESULTS), NAME)] }
      pages = pages.select { |_, path| File.exist?(path) && File.dirname(path) != folder }
      links = pages.map { |title, path| "[#{title}](#{Pathname(path).relative_path_from(folder)})" }
      "\n\nMore pages: #{links.join(", ")}." if links.any?
    end

    def suite = @results.keys.first&.class&.suite || Suite::HUB

    def others
      shares = @results.values.flat_map(&:runs).filter_map(&:others)
      shares.empty? ? [] : [["other load on the machine", "#{Spread.new(shares)} of a core"]]
    end

    def target_table
      return if targets.empty?
      rows = targets.map { |its| [its.name, title_of(its.entrant), its.bound, its.measured, its.verdict] }
      "## Targets\n\n" + Markdown.table(["Target", suite.who.capitalize, "Bound", "Measured", "Verdict"], rows)
    end

    def title_of(entrant) = Entrants.fetch(entrant).title

    def left_out
      return if @left_out.empty?
      "## Not taking part\n\n" + Markdown.table(%w[What Why], @left_out.to_a)
    end

    def incomplete
      rows = [@results, *@additions.map(&:results)].flat_map(&:to_a).flat_map { |scenario, results| results.incomplete.map { |run| incomplete_row(scenario, run) } }
      return if rows.empty?
      "## Incomplete runs\n\nThe figures of those that ended are in the tables; no target is reached by them.\n\n" +
        Markdown.table(["Scenario", "Test", suite.who.capitalize, "Size", "Round", "What"], rows)
    end

    def incomplete_row(scenario, run)
      what = run.failure ? run.failure.lines.map(&:strip).join(" ")[0, 300] : faults(run.figures)
      [scenario.class.key, run.cell.test, run.cell.entrant, run.cell.size, run.round + 1, what]
    end

    # Whatever went wrong, wherever in the figures it stands.
    def faults(figures, found = Hash.new(0))
      figures.each do |name, value|
        if value.is_a?(Hash) then faults(value, found)
        elsif %w[dead refused unanswered lost misdirected wrong].include?(name) && value != 0 then found[name] += value
        end
      end
      found.map { |name, count| "#{count} #{name}" }.join(", ")
    end

    def few_rounds(scenario)
      most = scenario.class.at_most_rounds
      " Rounds: #{most}." if most && @notes["rounds"].to_i > most
    end

    def section(scenario, results)
      images = scenario.plots(results).keys.map { |name| "![#{name.delete_suffix(".svg")}](#{name})" }
      tables = scenario.tables(results).map { |table| table.to_s.chomp }
      head = ["## #{scenario.class.title}", scenario.class.about, "`bin/bench #{scenario.class.key}`: #{settings(scenario)}.#{few_rounds(scenario)}"]
      apart = @additions.flat_map { |addition| addition.section(scenario.class) }
      [*head, *tables, *images, *apart].join("\n\n") + "\n"
    end

    def settings(scenario)
      scenario.values.map { |name, value| "#{name.to_s.tr("_", " ")} #{Array(value).join(", ")}" }.join("; ")
    end

    def conclusion = suite.conclude(@results)&.then { |text| "## In short\n\n#{text}\n" }

    def plots = @results.map { |scenario, results| scenario.plots(results).transform_values(&:to_svg) }.reduce({}, :merge)

    def json
      verdicts = targets.map { |target| target_row(target) }
      Record.dump({"machine" => @facts, "notes" => @notes, "left_out" => @left_out, "targets" => verdicts}, @results, additions: @additions)
    end

    def target_row(target)
      {"name" => target.name, "entrant" => target.entrant, "bound" => target.bound, "verdict" => target.verdict.delete("*"),
       **target.spread.to_h}
    end
  end
end
