# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # Follows which tags are of HTML, and which of SVG or MathML in it, where scripts and styles are not raw text, images are none, and
        # CDATA sections are.
        #
        #     html ─ <svg> ─► svg ─ <foreignObject>, <desc>, <title> ─► html ─► …
        #       ▲              │
        #       └── </svg>, or a tag that has no business there, such as <img>
        #
        # HTML Standard, section "The rules for parsing tokens in foreign content".
        class Namespaces
          # What makes a browser leave foreign content for good.
          HTML_ONLY = %w[b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr ol p pre ruby
            s small span strong strike sub sup table tt u ul var].to_h { |name| [name, true] }.freeze
          FONT = %w[color face size].freeze
          # In these there is HTML again.
          INTEGRATION = {svg: %w[foreignobject desc title], math: %w[mi mo mn ms mtext]}.freeze
          HTML_IN_MATH = %w[text/html application/xhtml+xml].freeze
          RAW = %w[iframe noembed noframes noscript script style textarea title xmp].to_h { |name| [name, name] }.merge("plaintext" => :plaintext).freeze
          DEEPEST = 256
          private_constant :HTML_ONLY, :FONT, :INTEGRATION, :HTML_IN_MATH, :RAW, :DEEPEST

          def initialize
            @open = [:html]
          end

          def foreign? = @open.last != :html

          # Whether it is deeper than anybody follows.
          def lost? = @open.size > DEEPEST

          def start(tag)
            @open.pop while foreign? && html_only?(tag)
            html = !foreign?
            if tag.name == "svg" || tag.name == "math"
              @open << tag.name.to_sym unless tag.self_closing?
              return false
            end
            @open << :html if !html && integration?(tag) && !tag.self_closing?
            html
          end

          def finish(name)
            @open.pop while foreign? && (name == "p" || name == "br")
            if foreign?
              @open.pop if @open.last.name == name
              return false
            end
            return true unless @open.size > 1 && ends_integration?(name)
            @open.pop
            false
          end

          def text_after(tag) = RAW[tag.name]

          private

          def html_only?(tag) = HTML_ONLY.key?(tag.name) || (tag.name == "font" && FONT.any? { |name| tag.values.key?(name) })

          def integration?(tag)
            return true if INTEGRATION.fetch(@open.last).include?(tag.name)
            tag.name == "annotation-xml" && @open.last == :math && HTML_IN_MATH.include?(tag.values["encoding"].to_s.downcase)
          end

          def ends_integration?(name)
            outer = @open[-2]
            outer != :html && (INTEGRATION.fetch(outer).include?(name) || (outer == :math && name == "annotation-xml"))
          end
        end
      end
    end
  end
end
