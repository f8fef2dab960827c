# frozen_string_literal: true

require_relative "digits"

module Bench
  # What the plots share: documents that stand alone and follow the reader's light or dark mode.
  module Svg
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

    private

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

    def short(value) = (value >= 1000) ? Digits.grouped(value.round) : format("%.3g", value)

    def escape(text) = text.gsub(/[&<>"]/, "&" => "&amp;", "<" => "&lt;", ">" => "&gt;", '"' => "&quot;")
  end
end
