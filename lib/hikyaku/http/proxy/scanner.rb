# frozen_string_literal: true

require_relative "../../support/url"
require_relative "../errors"
require_relative "scanner/attributes"
require_relative "scanner/content_security_policy"
require_relative "scanner/elements"
require_relative "scanner/tokenizer"

module Hikyaku
  module HTTP
    class Proxy
      # Finds the subresources of a page, which a browser requests while it parses the page, as the HTML streams past. No I/O.
      #
      #     scanner = Hikyaku::HTTP::Proxy::Scanner.new(base: "http://example.com/dir/page.html", charset: "utf-8")
      #     scanner << bytes   # => [#<Subresource image http://example.com/dir/a.png>], which these bytes added
      #
      # It finds images (img, picture, input, background, poster), style sheets, scripts and preloads, as Chromium requests them at VIEWPORT and one device pixel
      # per CSS pixel, with scripting on. It omits what a browser may not request:
      #
      # - the contents of comments, scripts, styles, text areas, templates (also of shadow trees), noscript, SVG and MathML;
      # - references in style sheets, style elements and attributes, which depend on the matching elements;
      # - rel=icon, which Chromium requests after the load; documents of frames; media; lazy images;
      # - style sheets that are alternate, disabled or for another medium than screens;
      # - images whose choice depends on media features other than the width, and types that browsers may not support;
      # - URLs beyond ASCII while the charset is unknown, or in the query of a page that is not UTF-8;
      # - what a Content-Security-Policy of the header, or of a preceding meta element, may not allow;
      # - everything after an unreadable base or policy.
      #
      # It takes linear time and bounded memory, and raises for no bytes. HTML Standard, sections "Tokenization", "Tree construction" and those of the elements.
      class Scanner
        MAX_VALUE = Tokenizer::MAX_VALUE
        MAX_TAG = Tokenizer::MAX_TAG
        # No browser sends requests for these. They are long: this check comes first.
        NO_REQUEST = /\A(?:data|javascript|about|blob|mailto|tel|file|filesystem):/i
        NO_BASE = %w[data javascript].freeze
        CHARSET = /charset[\t\n\f\r ]*=[\t\n\f\r ]*["']?([^\t\n\f\r "';]+)/i
        FRAMES = %w[iframe frame].freeze
        # Referrer Policy, section 3; the obsolete names of the meta element: HTML Standard, section "Standard metadata names".
        REFERRER_POLICIES = %w[no-referrer no-referrer-when-downgrade same-origin origin strict-origin origin-when-cross-origin strict-origin-when-cross-origin
          unsafe-url].to_h { |name| [name, name] }.freeze
        OBSOLETE_POLICIES = {"never" => "no-referrer", "always" => "unsafe-url", "default" => "strict-origin-when-cross-origin",
                             "origin-when-crossorigin" => "origin-when-cross-origin"}.freeze
        private_constant :NO_REQUEST, :NO_BASE, :CHARSET, :FRAMES, :REFERRER_POLICIES, :OBSOLETE_POLICIES

        # A resource that a page contains: a value.
        Subresource = Struct.new(:url, :kind, :as, :crossorigin, :referrer_policy, :script_module, keyword_init: true) do
          def module? = !!script_module

          def inspect = "#<Subresource #{kind} #{url}>"
        end

        # The name of a referrer policy, or nil.
        def self.referrer_policy(name, meta: false) = REFERRER_POLICIES[name] || (OBSOLETE_POLICIES[name] if meta)

        def initialize(base:, charset: nil, policies: [], max_urls: 1000)
          @url = @base = URL.parse(base.to_s.dup.force_encoding(Encoding::UTF_8))
          raise InvalidURL, "the page to scan has no absolute http or https URL; give its URL as base:" unless @url&.plain_http?
          @charset = Charset.new(charset)
          @max = max_urls
          @policies = ContentSecurityPolicy.parse_all(policies, @url)
          @refused = 0
          @namespaces = Namespaces.new
          @elements = Elements.new
          @templates = 0
          @seen = {serialize(@url) => true}
          @found = []
          @frames = []
          @done = max_urls < 1
          @tokenizer = Tokenizer.new(self)
        end

        def <<(bytes)
          @charset.sniff(bytes) unless done?
          return [] if done?
          @tokenizer << bytes
          @found.tap { @found = [] }
        end

        # The URLs of frames that were found since the last call. Their documents are parts of the page.
        def frames = @frames.tap { @frames = [] }

        def done? = @done || !@charset.ascii?

        def inspect = "#<#{self.class}#{" done" if done?}>"

        # The tokenizer calls the next three. This one returns how the text after the tag is tokenized.
        def start_tag(tag)
          html = @namespaces.start(tag)
          @done ||= @namespaces.too_deep? || !@charset.ascii?
          return :plaintext if @done
          return unless html
          read(tag)
          @namespaces.text_after(tag)
        end

        def end_tag(name)
          return unless @namespaces.finish(name)
          if name == "template"
            @templates -= 1 if @templates > 0
          elsif @templates.zero?
            @elements.finish(name)
          end
        end

        def cdata? = @namespaces.foreign?

        private

        def read(tag)
          return @templates += 1 if tag.name == "template"
          return if @templates > 0
          attributes = Attributes.new(tag.values, @charset)
          case tag.name
          when "base" then base(tag, attributes)
          when "meta" then meta(tag, attributes)
          when *FRAMES then catch(:unsure) { frame(tag, attributes) }
          else catch(:unsure) { element(tag, attributes) }
          end
        end

        # The first base with a URL counts. Without it no reference can be resolved.
        def base(tag, attributes)
          return if @based || (tag.readable? && !attributes.key?("href"))
          @based = @done = true
          return unless tag.readable?
          catch(:unsure) do
            url = resolve(attributes.text("href"), @url)
            url = nil if url && NO_BASE.include?(url.protocol)
            @base = url if url
            @done = @policies.any? && !url.nil? && !(url.plain_http? && allowed?(:base, url))
          end
        end

        def meta(tag, attributes)
          return @done = true unless tag.readable?
          catch(:unsure) do
            kind = attributes.word("http-equiv")
            return add_policy(attributes) if kind == "content-security-policy"
            label = (kind == "content-type") ? attributes.text("content")[CHARSET, 1] : attributes["charset"]
            @charset.meta(label, tag.stop) if label
            @referrer_policy = Scanner.referrer_policy(attributes.word("content"), meta: true) || @referrer_policy if attributes.word("name") == "referrer"
          end
        end

        # An unreadable policy may forbid anything.
        def add_policy(attributes)
          @done = true
          catch(:unsure) do
            text = attributes.text("content")
            @policies += [ContentSecurityPolicy.new(text, @url)] unless text.empty?
            @done = @policies.size > ContentSecurityPolicy::MAX
          end
        end

        def element(tag, attributes)
          wanted = @elements.start(tag.name, attributes)
          return unless wanted && tag.readable?
          url = url_of(wanted.delete(:reference))
          add(url, wanted) if url
        end

        def frame(tag, attributes)
          url = url_of(attributes.text("src")) if tag.readable? && @frames.size < @max
          @frames << serialize(url) if url
        end

        def url_of(reference)
          return if reference.empty? || reference.match?(NO_REQUEST)
          url = resolve(reference, @base)
          url if url&.plain_http? && url.username.empty? && url.password.empty? && !url.hostname.empty?
        end

        # A browser encodes the query in the page's charset, and all else in UTF-8. It refuses a line end with a "<", as dangling markup.
        def resolve(reference, base)
          throw :unsure if reference.include?("<") && reference.match?(/[\t\n\r]/)
          query = reference[/\?[^#]*/]
          throw :unsure if query && !query.ascii_only? && !@charset.utf_8?
          URL.parse(reference, base: base)
        end

        def add(url, wanted)
          nonce = wanted.delete(:nonce)
          text = serialize(url)
          return if @seen.key?(text)
          return refuse unless allowed?(wanted[:kind], url, nonce)
          @seen[text] = true
          @found << Subresource.new(url: text, **wanted, referrer_policy: wanted[:referrer_policy] || @referrer_policy).freeze
          @done = @seen.size > @max
        end

        def allowed?(kind, url, nonce = nil) = @policies.all? { |policy| policy.allows?(kind, url, nonce: nonce) }

        # The check of a forbidden URL takes time, too.
        def refuse
          @refused += 1
          @done = true if @refused > @max
        end

        def serialize(url)
          path = url.pathname.empty? ? "/" : url.pathname
          url.query ? -"#{url.origin}#{path}?#{url.query}" : -"#{url.origin}#{path}"
        end

        # Tracks whether tags belong to HTML, or to SVG or MathML: there, scripts and styles are not raw text, images are none, and CDATA sections exist.
        #
        #     html ─ <svg> ─► svg ─ <foreignObject>, <desc>, <title> ─► html ─► …
        #       ▲              │
        #       └── </svg>, or a tag that is not allowed there, such as <img>
        #
        # HTML Standard, section "The rules for parsing tokens in foreign content".
        class Namespaces
          # A browser leaves foreign content at these.
          HTML_ONLY = %w[b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr ol p pre ruby
            s small span strong strike sub sup table tt u ul var].to_h { |name| [name, true] }.freeze
          FONT = %w[color face size].freeze
          # They contain HTML.
          INTEGRATION = {svg: %w[foreignobject desc title], math: %w[mi mo mn ms mtext]}.freeze
          HTML_IN_MATH = %w[text/html application/xhtml+xml].freeze
          RAW = %w[iframe noembed noframes noscript script style textarea title xmp].to_h { |name| [name, name] }.merge("plaintext" => :plaintext).freeze
          MAX_DEPTH = 256
          private_constant :HTML_ONLY, :FONT, :INTEGRATION, :HTML_IN_MATH, :RAW, :MAX_DEPTH

          def initialize
            @open = [:html]
          end

          def foreign? = @open.last != :html

          def too_deep? = @open.size > MAX_DEPTH

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
        private_constant :Namespaces
      end
    end
  end
end
