# frozen_string_literal: true

require_relative "bars"
require_relative "entrants"
require_relative "parts"
require_relative "stage"
require_relative "suite"

module Bench
  # What is measured in one go: a test, with which server, at what size.
  Cell = Struct.new(:test, :entrant, :size)

  # A question about whole servers under load: one class in one file of bench/macro. It says what is to be measured in each
  # round (#groups), how (#measure), and what the figures of all rounds are shown as (#tables, #targets, #plots).
  class Scenario
    Setting = Struct.new(:name, :default, :quick, :about, keyword_init: true)

    class << self
      # @return [Array<Class>] in the order in which they are told
      def all
        Dir[File.expand_path("../macro/*.rb", __dir__)].sort.each { |file| require file }
        @all.sort_by { |scenario| [scenario.order, scenario.key] }
      end

      def inherited(scenario)
        super
        (@all ||= []) << scenario
        scenario.settings.update(settings)
      end

      # @return [String] on the command line: OwnTopics is own-topics
      def key = name.split("::").last.gsub(/(?<=[a-z])(?=[A-Z])/, "-").downcase

      # @return [String]
      def title(text = nil) = text ? @title = text : @title

      # @return [Integer] its place among the others
      def order(number = nil) = number ? @order = number : @order || 100

      # @return [Suite] which page it belongs to
      def suite(suite = nil) = suite ? @suite = suite : @suite || Suite::HUB

      # @return [String] what it asks and how it measures; a paragraph of Markdown
      def about(text = nil) = text ? @about = text.strip : @about

      # @param number [Integer] of rounds that are enough, where a run takes long
      # @return [Integer, nil]
      def at_most_rounds(number = nil) = number ? @at_most_rounds = number : @at_most_rounds

      # @param number [Integer] of cells, each of another place, that are measured at the same time because they do not disturb each other
      # @return [Integer]
      def at_once(number = nil) = number ? @at_once = number : @at_once || 1

      # @param names [Array<String>]
      # @param quick [Array<String>, nil] those of them that take part in a short look; nil: all
      # @return [Array<String>] who takes part unless others are named
      def entrants(*names, quick: nil)
        return @entrants if names.empty?
        @quick_entrants = quick
        @entrants = names.flatten
      end

      # @return [Array<String>] who takes part in a short look
      def quick_entrants = @quick_entrants || entrants

      # @return [String, nil] why it cannot be measured on this machine
      def obstacle = nil

      # @return [Hash{String => String}] of what it is measured with, beyond those who take part
      def versions = {}

      # @return [Hash{Symbol => Setting}]
      def settings = @settings ||= {}

      # Declares something that the command line can change.
      #
      # @param default [Object] an Integer, a Float, a String or an Array of numbers or texts
      # @param quick [Object] for a short look
      def setting(name, default, about:, quick: default)
        settings[name] = Setting.new(name: name, default: default, quick: quick, about: about)
        define_method(name) { @values.fetch(name) }
      end
    end

    # @return [Array<String>]
    attr_reader :entrants
    # @return [Hash{Symbol => Object}]
    attr_reader :values

    # @param entrants [Array<String>] who takes part
    # @param values [Hash{Symbol => Object}] settings that are not the default
    # @param quick [Boolean]
    def initialize(entrants: nil, values: {}, quick: false)
      @entrants = entrants || (quick ? self.class.quick_entrants : self.class.entrants)
      @values = self.class.settings.transform_values { |setting| quick ? setting.quick : setting.default }.merge(values)
    end

    # What one round measures: groups of cells that are compared with each other. Each round begins a group with another
    # cell: none always runs on a machine that is just warm, or just tired.
    #
    # @return [Array<Array<Cell>>]
    def groups = raise(NotImplementedError)

    # @param cell [Cell]
    # @return [Hash] figures, with "whole": whether nothing was lost, refused or misdirected
    def measure(cell) = raise(NotImplementedError)

    # @param round [Integer] from 0
    # @param cell [Cell]
    # @return [Hash] see {#measure}
    def measure_in(_round, cell) = measure(cell)

    # @param cell [Cell]
    # @return [Object] what it is measured on: cells of the same are measured one after another, see {.at_once}
    def place(_cell) = nil

    # @param figures [Hash]
    # @return [String] the figure that counts, for the progress
    def headline(figures) = raise(NotImplementedError)

    # @param results [Results]
    # @return [Array<Table>]
    def tables(results) = raise(NotImplementedError)

    # @param results [Results]
    # @return [Array<Target>]
    def targets(results) = []

    # @param results [Results]
    # @return [Hash{String => #to_svg}] by name of the file
    def plots(results) = {}

    private

    def cell(test, entrant, size = nil) = Cell.new(test.to_s, entrant, size)

    # Those of these that take part.
    def among(*names) = names.flatten & entrants

    def title_of(entrant) = Entrants.fetch(entrant).title

    # Starts a server, wakes it, yields a stage to load it on, and stops it.
    #
    # @param speech [Hash] see {Entrant#stage}
    # @param link [Link, nil] between the server and the loads
    # @param settings [Hash] of the server
    # @yieldparam stage [Stage]
    # @return [Hash] the figures that the block returns, whole only if all the loads were
    def on_stage(entrant, speech: {}, link: nil, **settings)
      entrant = Entrants.fetch(entrant)
      entrant.run(link: link, **settings) do |server|
        stage = entrant.stage(server, link: link, **speech)
        stage.wake
        figures = yield stage
        figures.merge("whole" => stage.whole?)
      end
    end

    # One bar for each that has a figure.
    #
    # @param file [String]
    # @param bars [Hash{String => Spread, nil}] by name
    # @param more [Hash] see {Bars}
    # @return [Hash] see {#plots}
    def bars(file, bars, **more)
      bars = bars.compact
      bars.empty? ? {} : {file => Bars.new(bars: bars, **more)}
    end

    # How busy both cores were: a figure is the server's only when the load was not the slower one.
    BUSY = ["server busy", "load busy"].freeze

    def busy(results, cell, *path) = %w[server_busy load_busy].map { |name| share(results.spread(cell, *path, name)) }

    # @param spread [Spread, nil]
    # @return [String] a cell of a table
    def show(spread, digits = 2) = spread ? spread.to_s(digits) : "–"

    def share(spread) = spread ? "#{(spread.median * 100).round} %" : "–"
  end
end
