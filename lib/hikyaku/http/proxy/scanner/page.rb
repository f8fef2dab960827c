# frozen_string_literal: true

require_relative "../../../hub/url"
require_relative "attributes"
require_relative "elements"
require_relative "inline"
require_relative "namespaces"

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # Listens to the tags of a page, and keeps what decides about all of it: its base, templates, policies, and what was found.
        #
        # @api private
        class Page
          # No browser asks a network for these; told early, for they are long.
          ELSEWHERE = /\A(?:data|javascript|about|blob|mailto|tel|file|filesystem):/i
          NO_BASE = %w[data javascript].freeze
          # The parser of URLs takes time in proportion to the square of these, and no URL has them.
          MUCH_SPACE = /[\x00-\x20]{32}/
          CHARSET = /charset[\t\n\f\r ]*=[\t\n\f\r ]*["']?([^\t\n\f\r "';]+)/i
          private_constant :ELSEWHERE, :NO_BASE, :MUCH_SPACE, :CHARSET

          # @param url [Hub::Url] of the page
          # @param charset [Charset]
          # @param most [Integer] URLs
          def initialize(url, charset, most)
            @url = @base = url
            @charset = charset
            @most = most
            @namespaces = Namespaces.new
            @elements = Elements.new
            @templates = 0
            @seen = {written(url) => true}
            @found = []
            @done = most < 1
          end

          def done? = @done

          # @return [Array<Inline>] found since it was asked last
          def take
            found = @found
            @found = []
            found
          end

          # @param tag [Tag]
          # @return [String, Symbol, nil] what follows it, see Tokenizer
          def start_tag(tag)
            html = @namespaces.start(tag)
            @done ||= @namespaces.lost? || !@charset.ascii?
            return :plaintext if @done
            return unless html
            read(tag)
            @namespaces.text_after(tag)
          end

          # @param name [String]
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
            else catch(:unsure) { element(tag, attributes) }
            end
          end

          # The first one with a URL counts. Without knowing it nothing can be resolved.
          def base(tag, attributes)
            return if @based || (tag.readable? && !attributes.key?("href"))
            @based = @done = true
            return unless tag.readable?
            catch(:unsure) do
              url = resolve(attributes.text("href"), @url)
              @base = url if url && !NO_BASE.include?(url.protocol)
              @done = false
            end
          end

          # What a Content-Security-Policy forbids is not asked for; none is read here.
          def meta(tag, attributes)
            return @done = true unless tag.readable?
            catch(:unsure) do
              kind = attributes.word("http-equiv")
              return @done = true if kind == "content-security-policy"
              label = (kind == "content-type") ? attributes.text("content")[CHARSET, 1] : attributes["charset"]
              @charset.meta(label, tag.stop) if label
              @policy = attributes.word("content") if attributes.word("name") == "referrer"
            end
          end

          def element(tag, attributes)
            wanted = @elements.start(tag.name, attributes)
            return unless wanted && tag.readable?
            reference = wanted.delete(:reference)
            return if reference.empty? || reference.match?(ELSEWHERE)
            url = resolve(reference, @base)
            found(url, wanted) if url&.plain_http? && url.username.empty? && url.password.empty? && !url.hostname.empty?
          end

          # The query is encoded in the page's own charset, all else in UTF-8. A line end with a "<" is what a browser takes for
          # markup that was not closed, and refuses.
          def resolve(reference, base)
            throw :unsure if reference.match?(MUCH_SPACE) || (reference.include?("<") && reference.match?(/[\t\n\r]/))
            query = reference[/\?[^#]*/]
            throw :unsure if query && !query.ascii_only? && !@charset.utf_8?
            Hub::Url.parse(reference, base: base)
          end

          def found(url, wanted)
            text = written(url)
            return if @seen.key?(text)
            @seen[text] = true
            @found << Inline.new(url: text, **wanted, referrer_policy: wanted[:referrer_policy] || @policy)
            @done = @seen.size > @most
          end

          def written(url)
            path = url.pathname.empty? ? "/" : url.pathname
            url.query ? -"#{url.origin}#{path}?#{url.query}" : -"#{url.origin}#{path}"
          end
        end
      end
    end
  end
end
