# frozen_string_literal: true

require_relative "svg"

module Bench
  # Bars beside each other as SVG, one a server. Each has a line from its least to its greatest value.
  class Bars
    include Svg

    LEFT = 250
    RIGHT = 90
    TOP = 56
    STEP = 34
    THICK = 20

    # @param title [String]
    # @param unit [String]
    # @param bars [Hash{String => Spread}] by name
    # @param guide [Hash, nil] {y:, label:}: a dashed line across
    def initialize(title:, unit:, bars:, guide: nil)
      @title = title
      @unit = unit
      @bars = bars
      @guide = guide
    end

    # @return [String] a document that stands alone
    def to_svg
      bars = @bars.each_with_index.flat_map { |(name, spread), index| draw(name, spread, index) }
      document(@title, TOP + @bars.size * STEP + 24, [text(16, 26, "#{@title}, #{@unit}", css: "title"), *bars, *guide])
    end

    private

    def draw(name, spread, index)
      top = TOP + index * STEP
      middle = top + THICK / 2
      [text(LEFT - 10, middle + 5, name, anchor: "end"),
        %(<rect fill="#{colour(index)}" x="#{LEFT}" y="#{top}" width="#{width(spread.median)}" height="#{THICK}"/>),
        line(LEFT + width(spread.min), middle, LEFT + width(spread.max), middle, "spread"),
        text(LEFT + width(spread.max) + 8, middle + 5, short(spread.median))]
    end

    def guide
      return [] unless @guide
      x = LEFT + width(@guide[:y])
      bottom = TOP + @bars.size * STEP
      [line(x, TOP - 8, x, bottom, "guide"), text(x, bottom + 14, "#{@guide[:label]} #{short(@guide[:y])}", anchor: "middle")]
    end

    def width(value) = ((WIDTH - LEFT - RIGHT) * value / greatest).round(1)

    def greatest = @greatest ||= [*@bars.values.map(&:max), @guide&.fetch(:y), 1e-9].compact.max
  end
end
