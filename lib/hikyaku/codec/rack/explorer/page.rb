# frozen_string_literal: true

require "digest"
require "rack/utils"
require_relative "../../reading"
require_relative "../../reading/sizes"

module Hikyaku
  module Codec
    module Rack
      class Explorer
        # The page: a form, and where something was asked for, what came. All of it is escaped, and a browser that is told otherwise runs nothing.
        class Page
          # The field Accept by the name of a representation.
          ASKED = {"JSON" => "application/json", "MessagePack" => "application/vnd.msgpack"}.freeze
          REPRESENTATIONS = {json: "JSON", msgpack: "MessagePack"}.freeze
          STYLE = <<~CSS
            body { font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem; color: #222; background: #fff }
            h1 { font-size: 1.2rem } h2 { font-size: 1rem; margin: 0 0 .5rem }
            form { display: flex; gap: .5rem; max-width: 50rem }
            input { flex: 1; font: inherit; padding: .3rem .5rem } button { font: inherit; padding: .3rem 1rem }
            table { border-collapse: collapse; margin: 1rem 0 } th, td { padding: .15rem .8rem .15rem 0; text-align: left; vertical-align: top }
            td.number { text-align: right; font-variant-numeric: tabular-nums }
            .both { display: grid; grid-template-columns: repeat(auto-fit, minmax(25rem, 1fr)); gap: 1.5rem }
            section { min-width: 0 } pre { background: #f5f5f2; padding: .8rem; overflow: auto; max-height: 40rem; font-size: 13px } .note { color: #a33 }
          CSS
          FIELDS = {
            "content-type" => "text/html; charset=utf-8", "cache-control" => "no-store",
            "x-content-type-options" => "nosniff", "referrer-policy" => "no-referrer",
            "cross-origin-opener-policy" => "same-origin", "cross-origin-resource-policy" => "same-origin",
            "content-security-policy" => "default-src 'none'; style-src 'sha256-#{Digest::SHA256.base64digest(STYLE)}'; " \
              "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
          }.freeze
          SHOWN = %w[Content-Type ETag Vary Cache-Control].freeze
          # Of the text of a body on the page.
          LIMITS = Reading::Printer::Limits.new(entries: 200, text: 1000, depth: 32, bytes: 500_000).freeze
          private_constant :REPRESENTATIONS, :STYLE, :SHOWN, :LIMITS

          def initialize(path: "", visits: {}, complaint: nil)
            @path = path
            @visits = visits
            @complaint = complaint
          end

          def html
            <<~HTML
              <!doctype html>
              <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Representations</title>
              <style>#{STYLE}</style></head>
              <body><h1>Representations</h1>
              <form method="get"><input name="path" aria-label="Path" placeholder="/items?page=2" maxlength="2000" value="#{escape(@path)}">
              <button>Ask</button></form>
              #{"<p class=\"note\">#{escape(@complaint)}</p>" if @complaint}
              #{results if @visits.any?}
              </body></html>
            HTML
          end

          private

          def results
            "#{sizes}<div class=\"both\">#{@visits.map { |name, visit| section(name, visit) }.join}</div>"
          end

          def section(name, visit)
            rows = [["Accept", ASKED[name]], ["Status", visit.status.to_s], *SHOWN.map { |field| [field, visit.fields[field.downcase].to_s] }]
            cells = rows.map { |heading, text| "<tr><th>#{heading}</th><td>#{escape(text)}</td></tr>" }.join
            "<section><h2>#{name}</h2><table>#{cells}</table>#{body(visit)}</section>"
          end

          def body(visit)
            note = "<p class=\"note\">#{escape(visit.note)}</p>" if visit.note
            return note.to_s if visit.body.empty?
            size = Reading::Number.text(visit.body.bytesize)
            return "#{note}<p>#{size} bytes of #{escape(visit.type)}, which is not shown here.</p>" unless Reading.known?(visit.type)
            "#{note}<pre>#{escape(Reading.show(visit.body, type: type(visit), width: 80, limits: LIMITS).text)}</pre>"
          end

          def type(visit) = Reading.type_of(visit.body, visit.type)

          def sizes
            rows = measured
            return "" if rows.empty?
            whole = rows.values.first.fetch("plain")
            columns = rows.values.flat_map(&:keys).uniq
            head = columns.map { |name| "<th>#{escape(name)}</th>" }.join
            lines = rows.map { |name, row| "<tr><th>#{escape(name)}</th>#{columns.map { |column| cell(row[column], whole) }.join}</tr>" }.join
            "<table><tr><th>Bytes</th>#{head}</tr>#{lines}</table>"
          end

          def cell(bytes, whole)
            return "<td></td>" unless bytes
            "<td class=\"number\">#{Reading::Number.text(bytes)}#{" (#{(100.0 * bytes / whole).round} %)" unless whole.zero?}</td>"
          end

          # Where the application has but one representation, the other is made of it, to see whether it would be worth it.
          def measured
            sizes = @visits.select { |_, visit| visit.whole? && Reading.known?(visit.type) && !visit.body.empty? }
              .to_h { |name, visit| [name, [type(visit), Reading::Sizes.new(visit.body, type: type(visit))]] }
            rows = sizes.to_h { |name, (type, size)| [named(name, type), size.rows.fetch("identity")] }
            types = sizes.values.map(&:first).uniq
            return rows if types != [:json]
            made = sizes.values.first.last.rows["MessagePack"]
            made ? rows.merge("MessagePack, if it were offered" => made) : rows
          end

          def named(name, type)
            given = REPRESENTATIONS.fetch(type)
            (given == name) ? name : "#{name} asked for, #{given} given"
          end

          def escape(text) = ::Rack::Utils.escape_html(Reading::Notation.harmless(text))
        end
        private_constant :Page
      end
    end
  end
end
