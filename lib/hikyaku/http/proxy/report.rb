# frozen_string_literal: true

require "cgi/escape"
require "cgi/util"

module Hikyaku
  module HTTP
    class Proxy
      # The proxy's own page, http://hikyaku.proxy/: which servers are pipelined and why, and how the last pages came, with and without what the proxy does.
      class Report
        HOST = "hikyaku.proxy"
        # What the page may do, itself: show itself.
        POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'"
        WIDTH = 640 # units of a bar's full length
        ROW = 14
        LONGEST_NAME = 44 # characters
        # What writes from right to left, or nothing, would hide what stands beside it.
        UNSEEN = /[\p{Cc}\p{Cf}]/
        # Of a time axis, seconds; so many at least are between its lines.
        STEPS = [1, 2, 5].flat_map { |digit| (-3..4).map { |power| digit * 10.0**power } }.sort.freeze
        MOST_LINES = 8
        WAYS = {ahead: "fetched ahead", pipeline: "asked for when the browser did", cache: "from the cache", passed: "passed on as it was"}.freeze
        private_constant :WIDTH, :ROW, :LONGEST_NAME, :UNSEEN, :STEPS, :MOST_LINES, :WAYS

        def initialize(visits, explanations:, ahead:, token:)
          @visits = visits
          @explanations = explanations
          @ahead = ahead
          @token = token
        end

        def to_s
          <<~HTML
            <!DOCTYPE html>
            <html lang="en">
            <meta charset="utf-8">
            <title>Hikyaku proxy</title>
            <style>#{STYLE}</style>
            <h1>Hikyaku proxy</h1>
            #{switch}
            <h2>Pages</h2>
            #{pages}
            <h2>Servers</h2>
            #{servers}
            </html>
          HTML
        end

        private

        STYLE = <<~CSS
          body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #222; background: #fff }
          h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem } h3 { font-size: 1rem; margin-bottom: 0 }
          svg { width: 100%; font-size: 10px } .ahead { fill: #2a7 } .pipeline { fill: #37c } .cache { fill: #999 } .passed { fill: #c73 }
          .unwanted { opacity: .4 } line { stroke: #222 } line.axis { stroke: #8884 } .key { margin-right: 1.5em } .key::before { content: "■ "; } .key.ahead::before { color: #2a7 }
          .key.pipeline::before { color: #37c } .key.cache::before { color: #999 } .key.passed::before { color: #c73 }
          @media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 } line { stroke: #ddd } text { fill: #ddd } }
        CSS
        private_constant :STYLE

        def switch
          state = @ahead ? "It pipelines requests, and fetches what pages contain before the browser asks." : "It passes requests on one by one, as they come: to compare."
          <<~HTML.chomp
            <form method="post" action="/switch"><p>#{state}
            <input type="hidden" name="token" value="#{h(@token)}"><button>#{button}</button></p></form>
          HTML
        end

        def button = @ahead ? "Pass on only" : "Pipeline and fetch ahead"

        def servers
          return "<p>None was asked yet.</p>" if @explanations.empty?
          "<ul>\n#{@explanations.map { |sentence| "<li>#{h(sentence)}" }.join("\n")}\n</ul>"
        end

        def pages
          shown = @visits.pages
          return "<p>None was loaded yet. Open one in this browser whose address begins with http://, and load this page again. Of https:// pages nothing is seen here: they pass through as they are.</p>" if shown.empty?
          latest = shown.first
          other = shown.find { |page| page.url == latest.url && page.ahead != latest.ahead }
          longest = [latest, other].compact.map(&:all_seconds).max
          [key, comparison(latest, other), *[latest, other].compact.map { |page| waterfall(page, longest) }].join("\n")
        end

        def key = "<p>#{WAYS.map { |way, words| %(<span class="key #{way}">#{words}</span>) }.join} A thin line is when the browser asked.</p>"

        def comparison(latest, other)
          return "<p>To compare, press “#{button}” above, load #{h(latest.url)} once more, and come back.</p>" unless other || latest.ahead != @ahead
          return "<p>To compare, load #{h(latest.url)} once more, and come back.</p>" unless other
          with, without = latest.ahead ? [latest, other] : [other, latest]
          ratio = without.seconds.positive? ? format(", a ratio of %.2f", with.seconds / without.seconds) : ""
          "<p>#{h(latest.url)}: #{seconds(with.seconds)} with, #{seconds(without.seconds)} without#{ratio}.</p>"
        end

        def waterfall(page, longest)
          scale = WIDTH / [longest, 0.001].max
          rows = axis(longest, (page.resources.size + 1) * ROW, scale) + page.resources.each_with_index.map { |resource, index| bar(resource, (index + 1) * ROW, scale) }
          <<~HTML.chomp
            <h3>#{h(page.url)}, #{page.ahead ? "with" : "without"}: #{page.resources.size} resources in #{seconds(page.seconds)}</h3>
            <svg viewBox="0 0 #{WIDTH + 460} #{(page.resources.size + 2) * ROW}" role="img" aria-label="when each resource was asked for and came">
            #{rows.join("\n")}
            </svg>
          HTML
        end

        def axis(longest, height, scale)
          step = STEPS.find { |one| longest / one <= MOST_LINES } || longest
          (0..(longest / step).floor).map do |count|
            x = n(count * step * scale)
            %(<line class="axis" x1="#{x}" x2="#{x}" y1="0" y2="#{height}"/><text x="#{x + 2}" y="#{ROW - 4}">#{(count * step).round(3)} s</text>)
          end
        end

        def bar(resource, y, scale)
          ended = resource.ended_at || resource.began_at
          x, width = resource.began_at * scale, [(ended - resource.began_at) * scale, 1].max
          unwanted = resource.wanted_at ? "" : " unwanted"
          asked = resource.wanted_at ? %(<line x1="#{n(resource.wanted_at * scale)}" x2="#{n(resource.wanted_at * scale)}" y1="#{y + 1}" y2="#{y + ROW - 2}"/>) : ""
          text = [name(resource.url), *outcome(resource)].join(" ")
          %(<rect class="#{resource.way}#{unwanted}" x="#{n(x)}" y="#{y + 2}" width="#{n(width)}" height="#{ROW - 5}"><title>#{h(resource.url)}</title></rect>#{asked}) +
            %(<text x="#{WIDTH + 8}" y="#{y + ROW - 4}">#{h(text)}</text>)
        end

        def name(url)
          last = File.basename(url)
          (last.size > LONGEST_NAME) ? "#{last[0, LONGEST_NAME / 2]}…#{last[-LONGEST_NAME / 2, LONGEST_NAME]}" : last
        end

        def outcome(resource)
          return ["under way"] unless resource.ended_at
          resource.status ? [resource.status, "#{resource.bytes} B", seconds(resource.ended_at)] : ["came to nothing", seconds(resource.ended_at)]
        end

        def seconds(value) = format("%.2f s", value)

        def n(value) = value.round(1)

        def h(text) = CGI.escapeHTML(text.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?").gsub(UNSEEN, "?"))
      end
    end
  end
end
