# frozen_string_literal: true

require_relative "digits"
require_relative "markdown"
require_relative "spread"

module Bench
  # A section of the page.
  Table = Struct.new(:title, :head, :rows, keyword_init: true) do
    # @return [String] in Markdown
    def to_s = "### #{title}\n\n#{Markdown.table(head, rows)}"
  end

  # A promise of the project about a server, and what was measured.
  Target = Struct.new(:name, :entrant, :at_most, :at_least, :less_than, :spread, :whole, keyword_init: true) do
    # @return [Boolean] whether the median keeps to it, and nothing was lost in any run behind it
    def reached? = !spread.nil? && whole && within?

    # @return [String]
    def verdict
      return "not measured" unless spread
      return "**missed**" unless within?
      whole ? "reached" : "**incomplete**"
    end

    # @return [String] "at most 1.1"
    def bound = "#{kind.to_s.tr("_", " ")} #{Digits.grouped(self[kind])}"

    # @return [String]
    def measured
      return "–" unless spread
      spread.to_s(digits)
    end

    private

    def digits
      return 0 if spread.median >= 100
      (spread.median < 0.2) ? 3 : 2
    end

    def kind = %i[at_most less_than at_least].find { |name| self[name] }

    def within?
      case kind
      when :at_most then spread.median <= at_most
      when :less_than then spread.median < less_than
      else spread.median >= at_least
      end
    end
  end
end
