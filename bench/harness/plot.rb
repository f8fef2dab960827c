# frozen_string_literal: true

module Bench
  # A line chart or a bar chart as SVG, which follows the reader's light or dark mode. Each value has a line from the least to the
  # greatest of the rounds.
  class Plot
    WIDTH = 720
    COLOURS = %w[#888888 #0a7d5a #c2571a #7a4fbf #2b6cb0 #b02b5a #8a7d1f #3a8f8f #d08c00 #5b5b9e #6b8e23 #a0522d].freeze
    STYLE = <<~CSS
      text { font: 13px system-ui, sans-serif; fill: #222 } .title { font-size: 16px; font-weight: 600 }
      .ground { fill: #fff } .axis { stroke: #bbb } .guide { stroke: #c00; stroke-dasharray: 6 4 } .line { fill: none; stroke-width: 2 }
      .spread { stroke: #222 }
      @media (prefers-color-scheme: dark) {
        text { fill: #ddd } .ground { fill: #16181c } .axis { stroke: #555 } .guide { stroke: #f66 } .spread { stroke: #ddd }
      }
    CSS
    # A bar chart: [left, right, top margin, distance, thickness]
    BAR_LEFT, BAR_RIGHT, BAR_TOP, BAR_STEP, BAR_THICK = 250, 90, 56, 34, 20
    HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 400, 64, 20, 64, 108

    # @param bars [Hash{String => Spread}]
    # @param guide [Hash, nil] {y:, label:}: a dashed line
    def self.bars(title:, unit:, bars:, guide: nil) = new { bar_chart("#{title}, #{unit}", title, bars, guide) }

    # @param series [Hash{String => Hash{Numeric => Spread}}] by name and x
    # @param x_log [Boolean] whether the axis is logarithmic; else it begins at 0
    def self.lines(title:, x:, y:, series:, guide: nil, x_log: true, y_log: false) = new { line_chart(title, x, y, series, guide, x_log, y_log) }

    def initialize(&draw) = @draw = draw

    def to_svg = @to_svg ||= instance_exec(&@draw)

    private

    def bar_chart(heading, title, bars, guide)
      greatest = [*bars.values.map(&:max), guide&.fetch(:y), 1e-9].compact.max
      width = ->(value) { ((WIDTH - BAR_LEFT - BAR_RIGHT) * value / greatest).round(1) }
      bottom = BAR_TOP + bars.size * BAR_STEP
      drawn = bars.each_with_index.flat_map do |(name, spread), index|
        top = BAR_TOP + index * BAR_STEP
        middle = top + BAR_THICK / 2
        [text(BAR_LEFT - 10, middle + 5, name, anchor: "end"),
          %(<rect fill="#{colour(index)}" x="#{BAR_LEFT}" y="#{top}" width="#{width.call(spread.median)}" height="#{BAR_THICK}"/>),
          line(BAR_LEFT + width.call(spread.min), middle, BAR_LEFT + width.call(spread.max), middle, "spread"),
          text(BAR_LEFT + width.call(spread.max) + 8, middle + 5, short(spread.median))]
      end
      if guide
        x = BAR_LEFT + width.call(guide[:y])
        drawn << line(x, BAR_TOP - 8, x, bottom, "guide") << text(x, bottom + 14, "#{guide[:label]} #{short(guide[:y])}", anchor: "middle")
      end
      document(title, bottom + 24, [text(16, 26, heading, css: "title"), *drawn])
    end

    def line_chart(title, x_title, y_title, series, guide, x_log, y_log)
      xs = series.values.flat_map(&:keys).uniq.sort
      ticks = y_ticks(series.values.flat_map(&:values), guide, y_log)
      inner = WIDTH - LEFT - RIGHT - 80
      from = x_log ? xs.first : 0
      x_at = ->(x) { xs.one? ? (LEFT + WIDTH - RIGHT) / 2 : (LEFT + 40 + inner * share(x, from, xs.last, x_log)).round(1) }
      y_at = ->(y) { (HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share(y_log ? [y, ticks.first].max : y, y_log ? ticks.first : 0, ticks.last, y_log)).round(1) }
      axes = xs.map { |x| text(x_at.call(x), HEIGHT - BOTTOM + 20, Bench.grouped(x), anchor: "middle") } <<
        text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 40, x_title, anchor: "middle")
      axes.concat(ticks.flat_map { |y| [line(LEFT, y_at.call(y), WIDTH - RIGHT, y_at.call(y), "axis"), text(LEFT - 8, y_at.call(y) + 4, short(y), anchor: "end")] })
      axes << text(LEFT, TOP - 14, y_title)
      if guide
        axes << line(LEFT, y_at.call(guide[:y]), WIDTH - RIGHT, y_at.call(guide[:y]), "guide") <<
          text(WIDTH - RIGHT, y_at.call(guide[:y]) - 6, "#{guide[:label]} #{guide[:y]}", anchor: "end")
      end
      lines = series.values.each_with_index.flat_map { |points, index| curve(points, colour(index), x_at, y_at) }
      document(title, HEIGHT + [(series.size + 1) / 2 - 2, 0].max * 20, [text(LEFT, 26, title, css: "title"), *axes, *lines, *legend(series.keys)])
    end

    def curve(points, colour, x_at, y_at)
      marks = points.map do |x, spread|
        %(<path stroke="#{colour}" d="M#{x_at.call(x)} #{y_at.call(spread.min)}V#{y_at.call(spread.max)}"/>) +
          %(<circle fill="#{colour}" cx="#{x_at.call(x)}" cy="#{y_at.call(spread.median)}" r="3.5"><title>#{short(spread.median)}</title></circle>)
      end
      [%(<polyline class="line" stroke="#{colour}" points="#{points.map { |x, spread| "#{x_at.call(x)},#{y_at.call(spread.median)}" }.join(" ")}"/>), *marks]
    end

    # In two columns, below the axis.
    def legend(names)
      names.each_with_index.map do |name, index|
        left = LEFT + (index % 2) * (WIDTH - LEFT - RIGHT) / 2
        top = HEIGHT - 48 + (index / 2) * 20
        %(<rect fill="#{colour(index)}" x="#{left}" y="#{top}" width="12" height="12"/>) + text(left + 18, top + 11, name)
      end
    end

    # Powers of ten, or about six round steps from 0.
    def y_ticks(spreads, guide, log)
      highest = [*spreads.map(&:max), guide&.fetch(:y)].compact.max
      if log
        first = Math.log10(spreads.map(&:min).select(&:positive?).min || 1).floor
        return (first..[Math.log10([highest, 10.0**first].max).ceil, first + 1].max).map { |power| 10.0**power }
      end
      unit = 10.0**Math.log10(highest / 5.0).floor
      step = [1, 2, 5, 10].map { |factor| factor * unit }.find { |candidate| candidate >= highest / 5.0 }
      (0..(highest / step).ceil).map { |count| (count * step).round(10) }
    end

    def share(value, from, to, log)
      value, from, to = [value, from, to].map { |number| Math.log10(number) } if log
      (value - from).fdiv(to - from)
    end

    def document(title, height, parts)
      <<~SVG
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 #{WIDTH} #{height}" width="#{WIDTH}" height="#{height}" role="img">
        <title>#{escape(title)}</title>
        <style>#{STYLE}</style>
        <rect class="ground" width="#{WIDTH}" height="#{height}"/>
        #{parts.join("\n")}
        </svg>
      SVG
    end

    def line(x1, y1, x2, y2, css) = %(<line class="#{css}" x1="#{x1}" y1="#{y1}" x2="#{x2}" y2="#{y2}"/>)

    def text(x, y, content, anchor: "start", css: nil)
      %(<text x="#{x}" y="#{y}" text-anchor="#{anchor}"#{%( class="#{css}") if css}>#{escape(content.to_s)}</text>)
    end

    def colour(index) = COLOURS[index % COLOURS.size]

    def short(value) = (value >= 1000) ? Bench.grouped(value.round) : format("%.3g", value)

    def escape(text) = text.gsub(/[&<>"]/, "&" => "&amp;", "<" => "&lt;", ">" => "&gt;", '"' => "&quot;")
  end
end
