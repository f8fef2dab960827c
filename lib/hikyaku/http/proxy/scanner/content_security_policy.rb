# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # A Content-Security-Policy, as far as it restricts a page's subresources: a value. In doubt it allows nothing.
        #
        #     policy = ContentSecurityPolicy.new("default-src 'self'; img-src *", page)
        #     policy.allows?(:image, url)
        #
        # It ignores hashes. With `sandbox` or `upgrade-insecure-requests` it allows nothing, because a browser then sends other fields, or requests https URLs.
        #
        # Content Security Policy Level 3, sections 2.2.1, 6.7 and 6.8.
        class ContentSecurityPolicy
          # A source of a directive: a value.
          #
          #     '*'   'self'   https:   [scheme://]host[:port][/path]   'nonce-…'
          #
          # Other sources match no URL, and neither do addresses but 127.0.0.1 (section 6.7.2.8). Paths are compared without decoding.
          class Source
            SCHEME = /\A([a-z][a-z0-9+\-.]*):\z/n
            HOST = %r{\A(?:([a-z][a-z0-9+\-.]*)://)?(\*|(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)(?::([0-9]{1,5}|\*))?(/[^?\#]*)?\z}in
            ADDRESS = /\A(?:[0-9]+|.*\.[0-9]+)\z/n
            NONCE = /\A'nonce-([A-Za-z0-9+\/_-]+={0,2})'\z/in
            LOCAL = "127.0.0.1"
            PORTS = {"http" => "80", "https" => "443"}.freeze
            # The schemes that a scheme also matches: section 6.7.2.7.
            STRONGER = {"http" => "https"}.freeze
            private_constant :SCHEME, :HOST, :ADDRESS, :NONCE, :LOCAL, :PORTS, :STRONGER

            def initialize(text)
              @text = text.downcase
              @nonce = text[NONCE, 1]
              @scheme, @host, @port, @path = HOST.match(text)&.captures
              @scheme, @host = @scheme&.downcase, @host&.downcase
              @only_scheme = @text[SCHEME, 1]
              freeze
            end

            def nonce?(nonce) = !@nonce.nil? && @nonce == nonce.b

            def strict_dynamic? = @text == "'strict-dynamic'"

            def matches?(url, page)
              case @text
              when "*" then true
              when "'self'" then url.origin == page.origin
              else @only_scheme ? scheme?(@only_scheme, url) : (!@host.nil? && host_source?(url, page))
              end
            end

            private

            def host_source?(url, page) = scheme?(@scheme || page.protocol, url) && host?(url.hostname) && port?(url) && path?(url.pathname)

            def scheme?(scheme, url) = [scheme, STRONGER[scheme]].include?(url.protocol)

            def host?(host)
              return true if @host == "*"
              return host.end_with?(@host.delete_prefix("*")) if @host.start_with?("*")
              @host == host && (!ADDRESS.match?(host) || host == LOCAL)
            end

            def port?(url)
              return true if @port == "*"
              number = url.port.empty? ? PORTS.fetch(url.protocol) : url.port
              number == (@port ? @port.to_i.to_s : PORTS.fetch(url.protocol))
            end

            def path?(path)
              return true if @path.nil?
              @path.end_with?("/") ? path.start_with?(@path) : path == @path
            end
          end
          private_constant :Source

          # The first directive that is present decides. Without any, all is allowed.
          DIRECTIVES = {
            image: %w[img-src default-src], style: %w[style-src-elem style-src default-src], script: %w[script-src-elem script-src default-src],
            font: %w[font-src default-src], other: %w[connect-src default-src], base: %w[base-uri]
          }.freeze
          UNSUPPORTED = %w[sandbox upgrade-insecure-requests].freeze
          WITH_NONCE = %i[script style].freeze
          SPACE = /[\t\n\f\r ]+/
          # Limits per page, per policy and per directive. Above them nothing is allowed.
          MAX = 8
          MAX_DIRECTIVES = 64
          MAX_SOURCES = 256
          private_constant :DIRECTIVES, :UNSUPPORTED, :WITH_NONCE, :SPACE, :MAX_DIRECTIVES, :MAX_SOURCES

          def self.parse_all(fields, page)
            texts = fields.flat_map { |value| value.b.split(",") }
            (texts.size > MAX) ? [new("sandbox", page)] : texts.map { |text| new(text, page) }
          end

          def initialize(text, page)
            @page = page
            parts = text.b.split(";", MAX_DIRECTIVES + 1)
            @nothing = parts.size > MAX_DIRECTIVES
            @directives = {}
            parts.each { |part| add(*part.split(SPACE).reject(&:empty?)) }
            freeze
          end

          def allows?(kind, url, nonce: nil)
            return false if @nothing
            sources = @directives.values_at(*DIRECTIVES.fetch(kind)).compact.first or return true
            return true if WITH_NONCE.include?(kind) && nonce && sources.any? { |source| source.nonce?(nonce) }
            # With 'strict-dynamic' URLs do not count.
            return false if kind == :script && sources.any?(&:strict_dynamic?)
            sources.any? { |source| source.matches?(url, @page) }
          end

          def inspect = "#<ContentSecurityPolicy #{@directives.keys.join(" ")}>"

          private

          # The first directive of a name counts.
          def add(name = nil, *sources)
            name = name&.downcase
            return if name.nil? || @directives.key?(name)
            @nothing ||= UNSUPPORTED.include?(name) || sources.size > MAX_SOURCES
            @directives[name] = sources.first(MAX_SOURCES).map { |source| Source.new(source) }
          end
        end
      end
    end
  end
end
