# frozen_string_literal: true

require "fileutils"
require "pathname"
require_relative "scenario"

module Bench
  # A page of results: tables and plots, and a file with every run. A person writes its conclusion.
  class Page
    NAME = "README.md"
    DATA = "results.jsonl"
    RESULTS = File.expand_path("../results", __dir__)
    CONCLUSION = "## In short\n\n"
    UNWRITTEN = "*The conclusion of these figures is not written yet.*\n"
    BUSY_MACHINE = 0.2 # of a core, used by other processes
    FAULTS = %w[dead refused unanswered lost misdirected wrong].freeze

    # @param parts [Array<Part>] the page, and what was measured apart
    def initialize(parts)
      @parts = parts
      @part, *@apart = parts
    end

    def interrupted? = @part.head["interrupted"]

    def targets = @targets ||= @part.targets + @apart.flat_map { |part| part.targets.each { |target| target.name += ", measured apart" } }

    # In Markdown: targets, incomplete runs, and every table.
    def tables = [target_table, left_out, incomplete, *@part.scenarios.map { |scenario| section(scenario) }].compact.join("\n")

    # @return [Array<String>] the paths of the written files
    def write(directory)
      FileUtils.mkdir_p(directory)
      path = File.join(directory, NAME)
      text = to_s(conclusion: conclusion_of(path), folder: File.expand_path(directory))
      plots = @part.scenarios.map { |scenario| scenario.plots.transform_values(&:to_svg) }.reduce({}, :merge)
      {NAME => text, DATA => Part.dump(@parts), **plots}.map { |name, content| File.join(directory, name).tap { |file| File.write(file, content) } }
    end

    def to_s(conclusion: UNWRITTEN, folder: nil)
      <<~TEXT
        # #{suite.title}

        #{provenance}

        #{suite.about} #{rounds} A cell of a table shows the median of the rounds, then the least and the greatest. #{suite.reading}

        Command: `#{@part.head["command"]}`. Every run: [#{DATA}](#{DATA}).#{" Tables that were measured apart say so." if @apart.any?}#{other_pages(folder)}

        #{Table.markdown(%w[What Value], facts(@part))}
        #{CONCLUSION}#{conclusion}
        #{tables}
      TEXT
    end

    private

    def suite = Suite::ALL.fetch(@part.head.fetch("page"))

    def rounds = "There are #{@part.head["rounds"]} rounds, each with every #{suite.entrant} in turn; no run is left out."

    # Which commit made the page, and whether in one run.
    def provenance
      commit, date, continued = @part.head["machine"].values_at("commit", "date", "continued")
      return "**Interrupted: some rounds are missing.** Commit: #{commit}, #{date}." if interrupted?
      one = commit.to_s.match?(/\A\h+\z/)
      return "Made in one run, at commit `#{commit}`, on #{date}." if one && continued.nil? && @apart.empty?
      more = @apart.map { |part| "#{part.scenarios.map { |its| "`#{its.class.key}`" }.join(", ")} on #{part.date}, at commit `#{part.head["machine"]["commit"]}`" }
      "**Not made in one run by one commit.** #{one ? "Commit: `#{commit}`" : "Commits: #{commit}"}; #{date}.#{" Continued: #{continued}." if continued}" \
        "#{" Some entrants were measured apart: #{more.join("; ")}." if more.any?}"
    end

    # What a person wrote stays as long as the runs are the same.
    def conclusion_of(path)
      return UNWRITTEN unless File.exist?(path)
      text = File.read(path)
      same = text.include?(Table.markdown(%w[What Value], facts(@part)))
      (same && text[/^#{Regexp.escape(CONCLUSION)}(.*?\n)\n(?=## )/mo, 1]) || UNWRITTEN
    end

    def other_pages(folder)
      folder = File.expand_path(suite.folder, RESULTS) unless folder&.start_with?("#{RESULTS}/")
      pages = Suite::ALL.values.to_h { |other| [other.title, File.join(File.expand_path(other.folder, RESULTS), NAME)] }
      pages = pages.select { |_, path| File.exist?(path) && File.dirname(path) != folder }
      links = pages.map { |title, path| "[#{title}](#{Pathname(path).relative_path_from(folder)})" }
      "\n\nMore pages: #{links.join(", ")}." if links.any?
    end

    def facts(part) = [*part.head["machine"].to_a, *part.others.then { |others| [["other load on the machine", "#{others} of a core"]] if others }]

    def target_table
      return if targets.empty?
      rows = targets.map { |its| [its.name, Entrants.fetch(its.entrant).title, its.bound, its.measured, its.verdict] }
      "## Targets\n\n" + Table.markdown(["Target", suite.entrant.capitalize, "Bound", "Measured", "Verdict"], rows)
    end

    def left_out
      its = @part.head["left_out"].to_h
      "## Not taking part\n\n" + Table.markdown(%w[What Why], its.to_a) if its.any?
    end

    def incomplete
      rows = @parts.flat_map(&:scenarios).flat_map do |scenario|
        scenario.results.incomplete.map do |run|
          what = run.failure ? run.failure.lines.map(&:strip).join(" ")[0, 300] : faults(run.figures)
          [scenario.class.key, run.cell.test, run.cell.entrant, run.cell.size, run.round + 1, what]
        end
      end
      return if rows.empty?
      "## Incomplete runs\n\nThe tables contain the figures of the runs that ended. No target is reached by an incomplete run.\n\n" +
        Table.markdown(["Scenario", "Test", suite.entrant.capitalize, "Size", "Round", "What"], rows)
    end

    def faults(figures, found = Hash.new(0))
      figures.each do |name, value|
        if value.is_a?(Hash) then faults(value, found)
        elsif FAULTS.include?(name) && value != 0 then found[name] += value
        end
      end
      found.map { |name, count| "#{count} #{name}" }.join(", ")
    end

    def section(scenario)
      type = scenario.class
      few = " Rounds: #{type.at_most_rounds}." if type.at_most_rounds && @part.head["rounds"].to_i > type.at_most_rounds
      settings = scenario.values.map { |name, value| "#{name.to_s.tr("_", " ")} #{Array(value).join(", ")}" }.join("; ")
      images = scenario.plots.keys.map { |name| "![#{name.delete_suffix(".svg")}](#{name})" }
      ["## #{type.title}", type.about, "`bin/bench #{type.key}`: #{settings}.#{few}", *scenario.tables.map { |table| table.to_s.chomp }, *images,
        *@apart.flat_map { |part| apart(part, type) }].join("\n\n") + "\n"
    end

    # What was measured apart has facts and tables of its own: figures of different runs are not comparable.
    def apart(part, type)
      scenarios = part.scenarios.select { |scenario| scenario.instance_of?(type) }
      scenarios.flat_map do |scenario|
        busy = part.others && part.others.median >= BUSY_MACHINE
        rows = [["command", "`#{part.head["command"]}`"], ["rounds", scenario.results.runs.map(&:round).max.to_i + 1], *facts(part),
          *part.head["left_out"].to_h.map { |name, why| ["#{name} did not take part", why] }]
        ["*Measured apart, #{part.date}*: entrants that the run above leaves out, and some of its entrants again. Compare these figures only with each other. " \
          "The plots are of the run above.#{" The machine did other work meanwhile: it raises CPU and times, but not bytes and losses." if busy}",
          Table.markdown(%w[What Value], rows).chomp,
          *scenario.tables.each { |table| table.title = "Measured apart, #{part.date}: #{table.title}" }.map { |table| table.to_s.chomp }]
      end
    end
  end
end
