# frozen_string_literal: true

require "cgi/escape"
require "cgi/util"

module Hikyaku
  module HTTP
    class Proxy
      # The page http://hikyaku.proxy/: which servers are pipelined and why, and how the last pages loaded, with and without the proxy's help.
      class StatusPage
        HOST = "hikyaku.proxy"
        # The page's own Content-Security-Policy.
        POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'"
        WIDTH = 640 # units of a bar's full length
        ROW = 14
        MAX_NAME = 44 # characters
        # Control and format characters could hide or reorder the text beside them.
        UNSEEN = /[\p{Cc}\p{Cf}]/
        # Seconds between two lines of the time axis.
        STEPS = [1, 2, 5].flat_map { |digit| (-3..4).map { |power| digit * 10.0**power } }.sort.freeze
        MAX_LINES = 8
        SOURCES = {prefetch: "prefetched", pipeline: "requested with the browser", cache: "from the cache", passed: "passed through"}.freeze
        private_constant :WIDTH, :ROW, :MAX_NAME, :UNSEEN, :STEPS, :MAX_LINES, :SOURCES

        def initialize(log, explanations:, prefetch:, token:)
          @log = log
          @explanations = explanations
          @prefetch = prefetch
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
          svg { width: 100%; font-size: 10px } .prefetch { fill: #2a7 } .pipeline { fill: #37c } .cache { fill: #999 } .passed { fill: #c73 }
          .unrequested { opacity: .4 } line { stroke: #222 } line.axis { stroke: #8884 } .key { margin-right: 1.5em } .key::before { content: "■ "; } .key.prefetch::before { color: #2a7 }
          .key.pipeline::before { color: #37c } .key.cache::before { color: #999 } .key.passed::before { color: #c73 }
          @media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 } line { stroke: #ddd } text { fill: #ddd } }
        CSS
        private_constant :STYLE

        def switch
          state = @prefetch ? "It pipelines requests, and prefetches the resources of pages." : "It only passes requests through, one by one, for comparison."
          <<~HTML.chomp
            <form method="post" action="/switch"><p>#{state}
            <input type="hidden" name="token" value="#{h(@token)}"><button>#{button}</button></p></form>
          HTML
        end

        def button = @prefetch ? "Only pass through" : "Pipeline and prefetch"

        def servers
          return "<p>No server was contacted yet.</p>" if @explanations.empty?
          "<ul>\n#{@explanations.map { |sentence| "<li>#{h(sentence)}" }.join("\n")}\n</ul>"
        end

        def pages
          shown = @log.pages
          return "<p>No page was loaded yet. Open an http:// page in this browser, and reload this page. The proxy cannot see https:// pages: it passes them through.</p>" if shown.empty?
          latest = shown.first
          other = shown.find { |page| page.url == latest.url && page.prefetch != latest.prefetch }
          longest = [latest, other].compact.map(&:total_seconds).max
          [key, comparison(latest, other), *[latest, other].compact.map { |page| waterfall(page, longest) }].join("\n")
        end

        def key = "<p>#{SOURCES.map { |source, words| %(<span class="key #{source}">#{words}</span>) }.join} A thin line shows when the browser requested it.</p>"

        def comparison(latest, other)
          return "<p>To compare, press “#{button}” above, load #{h(latest.url)} once more, and come back.</p>" unless other || latest.prefetch != @prefetch
          return "<p>To compare, load #{h(latest.url)} once more, and come back.</p>" unless other
          with, without = latest.prefetch ? [latest, other] : [other, latest]
          ratio = without.seconds.positive? ? format(", a ratio of %.2f", with.seconds / without.seconds) : ""
          "<p>#{h(latest.url)}: #{seconds(with.seconds)} with, #{seconds(without.seconds)} without#{ratio}.</p>"
        end

        def waterfall(page, longest)
          scale = WIDTH / [longest, 0.001].max
          rows = axis(longest, (page.resources.size + 1) * ROW, scale) + page.resources.each_with_index.map { |resource, index| bar(resource, (index + 1) * ROW, scale) }
          <<~HTML.chomp
            <h3>#{h(page.url)}, #{page.prefetch ? "with" : "without"}: #{page.resources.size} resources in #{seconds(page.seconds)}</h3>
            <svg viewBox="0 0 #{WIDTH + 460} #{(page.resources.size + 2) * ROW}" role="img" aria-label="when the browser requested each resource, and when it came">
            #{rows.join("\n")}
            </svg>
          HTML
        end

        def axis(longest, height, scale)
          step = STEPS.find { |one| longest / one <= MAX_LINES } || longest
          (0..(longest / step).floor).map do |count|
            x = n(count * step * scale)
            %(<line class="axis" x1="#{x}" x2="#{x}" y1="0" y2="#{height}"/><text x="#{x + 2}" y="#{ROW - 4}">#{(count * step).round(3)} s</text>)
          end
        end

        def bar(resource, y, scale)
          ended = resource.ended_at || resource.started_at
          x, width = resource.started_at * scale, [(ended - resource.started_at) * scale, 1].max
          unrequested = resource.requested_at ? "" : " unrequested"
          mark = resource.requested_at ? %(<line x1="#{n(resource.requested_at * scale)}" x2="#{n(resource.requested_at * scale)}" y1="#{y + 1}" y2="#{y + ROW - 2}"/>) : ""
          text = [name(resource.url), *outcome(resource)].join(" ")
          %(<rect class="#{resource.source}#{unrequested}" x="#{n(x)}" y="#{y + 2}" width="#{n(width)}" height="#{ROW - 5}"><title>#{h(resource.url)}</title></rect>#{mark}) +
            %(<text x="#{WIDTH + 8}" y="#{y + ROW - 4}">#{h(text)}</text>)
        end

        def name(url)
          last = File.basename(url)
          (last.size > MAX_NAME) ? "#{last[0, MAX_NAME / 2]}…#{last[-MAX_NAME / 2, MAX_NAME]}" : last
        end

        def outcome(resource)
          return ["pending"] unless resource.ended_at
          resource.status ? [resource.status, "#{resource.bytes} B", seconds(resource.ended_at)] : ["failed", seconds(resource.ended_at)]
        end

        def seconds(value) = format("%.2f s", value)

        def n(value) = value.round(1)

        def h(text) = CGI.escapeHTML(text.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?").gsub(UNSEEN, "?"))
      end
    end
  end
end
