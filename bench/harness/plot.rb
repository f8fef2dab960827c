# frozen_string_literal: true

require_relative "svg"

module Bench
  # A line chart as SVG, its x axis logarithmic, by number of subscribers, unless said. Each point has a bar from its least to its
  # greatest value. It follows the reader's light or dark mode.
  class Plot
    include Svg

    HEIGHT = 400
    LEFT = 64
    RIGHT = 20
    TOP = 64
    BOTTOM = 108

    # @param series [Array<Hash>] each {name:, points: [[x, y, least, greatest], …]}
    # @param guide [Hash, nil] {y:, label:}: a dashed line across
    # @param x_log [Boolean] whether the x axis is logarithmic; else it begins at 0
    # @param y_log [Boolean] whether the y axis is logarithmic too; else it begins at 0
    def initialize(title:, x:, y:, series:, guide: nil, x_log: true, y_log: false)
      @title = title
      @x = x
      @y = y
      @series = series
      @guide = guide
      @x_log = x_log
      @y_log = y_log
    end

    # @return [String] a document that stands alone
    def to_svg
      document(@title, HEIGHT + more_legend, [text(LEFT, 26, @title, css: "title"), *x_axis, *y_axis, *guide, *lines, *legend])
    end

    private

    def x_axis
      xs.map { |x| text(x_at(x), HEIGHT - BOTTOM + 20, Digits.grouped(x), anchor: "middle") } <<
        text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 40, @x, anchor: "middle")
    end

    def y_axis
      y_ticks.flat_map { |y|
        [line(LEFT, y_at(y), WIDTH - RIGHT, y_at(y), "axis"), text(LEFT - 8, y_at(y) + 4, short(y), anchor: "end")]
      } << text(LEFT, TOP - 14, @y)
    end

    def guide
      return [] unless @guide
      [line(LEFT, y_at(@guide[:y]), WIDTH - RIGHT, y_at(@guide[:y]), "guide"),
        text(WIDTH - RIGHT, y_at(@guide[:y]) - 6, "#{@guide[:label]} #{@guide[:y]}", anchor: "end")]
    end

    def lines
      @series.each_with_index.flat_map do |series, index|
        colour = colour(index)
        path = series[:points].map { |x, y| "#{x_at(x)},#{y_at(y)}" }.join(" ")
        marks = series[:points].map do |x, y, least, greatest|
          %(<path stroke="#{colour}" d="M#{x_at(x)} #{y_at(least)}V#{y_at(greatest)}"/>) +
            %(<circle fill="#{colour}" cx="#{x_at(x)}" cy="#{y_at(y)}" r="3.5"><title>#{short(y)}</title></circle>)
        end
        [%(<polyline class="line" stroke="#{colour}" points="#{path}"/>), *marks]
      end
    end

    # There is room for two rows.
    def more_legend = [(@series.size + 1) / 2 - 2, 0].max * 20

    # In two columns, below the axis.
    def legend
      @series.each_with_index.map do |series, index|
        left = LEFT + (index % 2) * (WIDTH - LEFT - RIGHT) / 2
        top = HEIGHT - 48 + (index / 2) * 20
        %(<rect fill="#{colour(index)}" x="#{left}" y="#{top}" width="12" height="12"/>) + text(left + 18, top + 11, series[:name])
      end
    end

    def xs = @xs ||= @series.flat_map { |series| series[:points].map(&:first) }.uniq.sort

    def highest
      @highest ||= [*@series.flat_map { |series| series[:points].map(&:last) }, @guide&.fetch(:y)].compact.max
    end

    def lowest
      @lowest ||= @series.flat_map { |series| series[:points].map { |point| point[2] } }.min
    end

    def y_ticks = @y_log ? decades : linear_ticks

    def decades
      first = Math.log10(lowest).floor
      (first..[Math.log10(highest).ceil, first + 1].max).map { |power| 10.0**power }
    end

    # About six round steps from 0 to above the highest point.
    def linear_ticks
      rough = highest / 5.0
      unit = 10.0**Math.log10(rough).floor
      step = [1, 2, 5, 10].map { |factor| factor * unit }.find { |candidate| candidate >= rough }
      (0..(highest / step).ceil).map { |count| (count * step).round(10) }
    end

    def x_at(x)
      return (LEFT + WIDTH - RIGHT) / 2 if xs.one?
      inner = WIDTH - LEFT - RIGHT - 80
      share = @x_log ? position(Math.log10(x), Math.log10(xs.first), Math.log10(xs.last)) : position(x, 0, xs.last)
      (LEFT + 40 + inner * share).round(1)
    end

    def y_at(y)
      share = @y_log ? position(Math.log10(y), Math.log10(y_ticks.first), Math.log10(y_ticks.last)) : position(y, 0, y_ticks.last)
      (HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share).round(1)
    end

    def position(value, from, to) = (value - from).fdiv(to - from)
  end
end
