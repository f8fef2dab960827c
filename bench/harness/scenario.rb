# frozen_string_literal: true

require_relative "entrants"
require_relative "results"
require_relative "suite"

module Bench
  # A section of a page.
  Table = Struct.new(:title, :head, :rows) do
    def to_s = "### #{title}\n\n#{Table.markdown(head, rows)}"

    def self.markdown(head, rows)
      cells = [head, *rows].map { |row| row.map { |cell| cell.to_s.gsub("|", "\\|") } }
      widths = cells.transpose.map { |column| column.map(&:size).max }
      lines = cells.map { |row| "| #{row.zip(widths).map { |cell, width| cell.ljust(width) }.join(" | ")} |\n" }
      lines.insert(1, "|#{widths.map { |width| "-" * (width + 2) }.join("|")}|\n").join
    end
  end

  # A question about whole servers under load: one class in one file of bench/macro. It says what to measure in each round
  # (#groups), how (#measure), and how to show the figures of all rounds (#tables, #targets, #plots).
  class Scenario
    Setting = Struct.new(:name, :default, :quick, :about, keyword_init: true)
    TIMES = %w[mean median min max p99].freeze
    REGISTERED = []

    class << self
      # All scenarios, in the order of the pages.
      def all
        Dir[File.expand_path("../macro/*.rb", __dir__)].sort.each { |file| require file }
        REGISTERED.sort_by { |scenario| [scenario.order, scenario.key] }
      end

      def fetch(key) = all.find { |scenario| scenario.key == key } || raise(KeyError, "there is no scenario #{key}")

      def inherited(scenario)
        super
        REGISTERED << scenario
        scenario.settings.update(settings)
      end

      # The name on the command line: OwnTopics is own-topics.
      def key = name.split("::").last.gsub(/(?<=[a-z])(?=[A-Z])/, "-").downcase

      # Each of these sets its value when it gets an argument. `at_most_rounds`: enough where a run takes long; `at_once`: places
      # measured at the same time, because they do not disturb each other.
      {title: nil, order: 100, at_most_rounds: nil, at_once: 1}.each do |name, default|
        define_method(name) { |value = nil| value ? instance_variable_set("@#{name}", value) : instance_variable_get("@#{name}") || default }
      end

      def suite(key = nil) = key ? @suite = Suite::ALL.fetch(key) : @suite || Suite::ALL.fetch("all")

      # The main figures of a run, for the progress: a format, and paths.
      def headline(*text) = text.empty? ? @headline : @headline = text

      # A paragraph of Markdown: the question, and the method.
      def about(text = nil) = text ? @about = text.strip : @about

      # The entrants, unless the command line names others; `quick`: with --quick.
      def entrants(*names, quick: nil)
        return @entrants if names.empty?
        @quick_entrants = quick
        @entrants = names.flatten
      end

      def quick_entrants = @quick_entrants || entrants

      # @return [String, nil] why it cannot be measured on this machine
      def obstacle = nil

      def versions = {}

      def settings = @settings ||= {}

      # Declares something that the command line can change: an Integer, a Float, a String, or an Array of them.
      def setting(name, default, about:, quick: default)
        settings[name] = Setting.new(name: name, default: default, quick: quick, about: about)
        define_method(name) { @values.fetch(name) }
      end
    end

    attr_reader :entrants, :values
    attr_accessor :results

    def initialize(entrants: nil, values: {}, quick: false, results: Results.new)
      @entrants = entrants || (quick ? self.class.quick_entrants : self.class.entrants)
      @values = self.class.settings.transform_values { |setting| quick ? setting.quick : setting.default }.merge(values)
      @results = results
    end

    # Groups of cells that are compared with each other; by default one group with the cell of each entrant.
    def groups = [entrants.map { |name| of(name) }]

    def cells = groups.flatten

    # @return [Hash] figures, with "whole": whether nothing was lost, refused or misdirected
    def measure(cell) = raise(NotImplementedError)

    def measure_in(_round, cell) = measure(cell)

    # Cells of one place are measured one after another, see {.at_once}.
    def place(_cell) = nil

    def headline(figures) = self.class.headline.then { |text, *paths| format(text, *paths.map { |path| figures.dig(*path.split(".")).to_f }) }

    def tables = raise(NotImplementedError)

    def targets = []

    # @return [Hash{String => Plot}] by name of the file
    def plots = {}

    private

    def cell(test, entrant, size = nil) = Cell.new(test.to_s, entrant, size)

    # Those of the names that take part.
    def among(*names) = names.flatten & entrants

    def title_of(entrant) = Entrants.fetch(entrant).title

    %i[spread ratio combine whole? target ratio_target].each do |name|
      define_method(name) { |*arguments, **more, &block| results.public_send(name, *arguments, **more, &block) }
    end

    # @param columns [Array<Array(String, Object)>] the head of a column, and its content: :title, :test or :size of the cell; the path
    #   of a figure, and the digits to show ("publish.cpu_us_each:1"); or a Proc that returns a Spread or a text
    def table(title, columns, cells = self.cells)
      rows = cells.map { |its| columns.map { |_, content| content(its, content) } }
      Table.new(title, columns.map(&:first), rows)
    end

    def content(its, content)
      return title_of(its.entrant) if content == :title
      return its[content] if content.is_a?(Symbol)
      path, digits = content.split(":") if content.is_a?(String)
      value = path ? spread(its, path) : content.call(its)
      (value.nil? || value.is_a?(Spread)) ? show(value, (digits || 2).to_i) : value
    end

    # A column for each of the times of a figure.
    def times(path, digits: 2, names: TIMES, head: "%s") = names.map { |name| [format(head, name), "#{path}.#{name}:#{digits}"] }

    # The use of both cores: a rate at which the load was busy all the time is that of the load.
    def busy(path = nil)
      %w[server load].map do |side|
        [side + " busy", ->(its) { spread(its, [path, "#{side}_busy"].compact.join("."))&.then { |share| "#{(share.median * 100).round} %" } || "–" }]
      end
    end

    def show(spread, digits = 2) = spread ? spread.to_s(digits) : "–"

    # A bar for each cell that has the figure; the block gives its name.
    def bars(file, path, cells = self.cells, **more, &name)
      name ||= ->(its) { title_of(its.entrant) }
      bars = cells.to_h { |its| [name.call(its), spread(its, path)] }.compact
      bars.empty? ? {} : {file => Plot.bars(bars: bars, **more)}
    end

    # A line for each name, a point for each x for which the block has a Spread.
    def lines(file, names, xs, **more)
      series = names.to_h { |name| [Entrants.known?(name) ? title_of(name) : name, xs.to_h { |x| [x, yield(name, x)] }.compact] }
      series = series.reject { |_, points| points.empty? }
      series.empty? ? {} : {file => Plot.lines(series: series, **more)}
    end

    # Starts a server, warms it up, yields a stage to load it, and stops it.
    #
    # @param speech [Hash] what the load sends, see {Entrant#speech}
    # @param settings [Hash] of the server
    # @return [Hash] the figures that the block returns
    def on_stage(entrant, speech: {}, link: nil, **settings)
      entrant = Entrants.fetch(entrant)
      entrant.run(link: link, **settings) do |server|
        stage = entrant.stage(server, link: link, **speech)
        stage.wake
        yield(stage).merge("whole" => stage.whole?)
      end
    end
  end
end
