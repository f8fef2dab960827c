# frozen_string_literal: true

require_relative "../../../support/url"
require_relative "attributes"
require_relative "elements"
require_relative "inline"
require_relative "namespaces"
require_relative "policy"

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # Listens to the tags of a page, and keeps what decides about all of it: its base, templates, policies, and what was found.
        class Page
          # No browser asks a network for these; told early, for they are long.
          ELSEWHERE = /\A(?:data|javascript|about|blob|mailto|tel|file|filesystem):/i
          NO_BASE = %w[data javascript].freeze
          CHARSET = /charset[\t\n\f\r ]*=[\t\n\f\r ]*["']?([^\t\n\f\r "';]+)/i
          FRAMES = %w[iframe frame].freeze
          private_constant :ELSEWHERE, :NO_BASE, :CHARSET, :FRAMES

          def initialize(url, charset, most, policies)
            @url = @base = url
            @charset = charset
            @most = most
            @policies = Policy.of(policies, url)
            @refused = 0
            @namespaces = Namespaces.new
            @elements = Elements.new
            @templates = 0
            @seen = {written(url) => true}
            @found = []
            @frames = []
            @done = most < 1
          end

          def done? = @done

          def take
            found = @found
            @found = []
            found
          end

          def take_frames
            frames = @frames
            @frames = []
            frames
          end

          def start_tag(tag)
            html = @namespaces.start(tag)
            @done ||= @namespaces.lost? || !@charset.ascii?
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

          # The first one with a URL counts. Without knowing it nothing can be resolved.
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
              return forbid(attributes) if kind == "content-security-policy"
              label = (kind == "content-type") ? attributes.text("content")[CHARSET, 1] : attributes["charset"]
              @charset.meta(label, tag.stop) if label
              @policy = ReferrerPolicy.named(attributes.word("content"), meta: true) || @policy if attributes.word("name") == "referrer"
            end
          end

          # A policy is for what comes after it. One that cannot be read may forbid anything.
          def forbid(attributes)
            @done = true
            catch(:unsure) do
              text = attributes.text("content")
              @policies += [Policy.new(text, @url)] unless text.empty?
              @done = @policies.size > Policy::MOST
            end
          end

          def element(tag, attributes)
            wanted = @elements.start(tag.name, attributes)
            return unless wanted && tag.readable?
            url = url_of(wanted.delete(:reference))
            found(url, wanted) if url
          end

          def frame(tag, attributes)
            url = url_of(attributes.text("src")) if tag.readable? && @frames.size < @most
            @frames << written(url) if url
          end

          def url_of(reference)
            return if reference.empty? || reference.match?(ELSEWHERE)
            url = resolve(reference, @base)
            url if url&.plain_http? && url.username.empty? && url.password.empty? && !url.hostname.empty?
          end

          # The query is encoded in the page's own charset, all else in UTF-8. A line end with a "<" is what a browser takes for
          # markup that was not closed, and refuses.
          def resolve(reference, base)
            throw :unsure if reference.include?("<") && reference.match?(/[\t\n\r]/)
            query = reference[/\?[^#]*/]
            throw :unsure if query && !query.ascii_only? && !@charset.utf_8?
            URL.parse(reference, base: base)
          end

          def found(url, wanted)
            nonce = wanted.delete(:nonce)
            text = written(url)
            return if @seen.key?(text)
            return refused unless allowed?(wanted[:kind], url, nonce)
            @seen[text] = true
            @found << Inline.new(url: text, **wanted, referrer_policy: wanted[:referrer_policy] || @policy)
            @done = @seen.size > @most
          end

          def allowed?(kind, url, nonce = nil) = @policies.all? { |policy| policy.allows?(kind, url, nonce: nonce) }

          # To look at what is forbidden takes time, too.
          def refused
            @refused += 1
            @done = true if @refused > @most
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
