# frozen_string_literal: true

require_relative "policy/source"

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # A Content-Security-Policy, as far as it says what a page may ask for by itself: a value. It allows only what it is sure to allow.
        #
        #     policy = Policy.new("default-src 'self'; img-src *", page)
        #     policy.allows?(:image, url)
        #
        # Not sure, and so not allowed, is what a hash allows, and with `sandbox` and `upgrade-insecure-requests` everything: then a browser says
        # other things than we know of, or asks for https URLs.
        #
        # Content Security Policy Level 3, sections 2.2.1, 6.7 and 6.8.
        class Policy
          # Which directive decides: the first that there is. Without any it is allowed.
          DIRECTIVES = {
            image: %w[img-src default-src], style: %w[style-src-elem style-src default-src], script: %w[script-src-elem script-src default-src],
            font: %w[font-src default-src], other: %w[connect-src default-src], base: %w[base-uri]
          }.freeze
          CHANGING = %w[sandbox upgrade-insecure-requests].freeze
          WITH_NONCE = %i[script style].freeze
          SPACE = /[\t\n\f\r ]+/
          # Of one page, one policy and one directive: where there are more, nothing is allowed.
          MOST = 8
          MOST_DIRECTIVES = 64
          MOST_SOURCES = 256
          private_constant :DIRECTIVES, :CHANGING, :WITH_NONCE, :SPACE, :MOST_DIRECTIVES, :MOST_SOURCES

          def self.of(fields, page)
            texts = fields.flat_map { |value| value.b.split(",") }
            (texts.size > MOST) ? [new("sandbox", page)] : texts.map { |text| new(text, page) }
          end

          def initialize(text, page)
            @page = page
            parts = text.b.split(";", MOST_DIRECTIVES + 1)
            @nothing = parts.size > MOST_DIRECTIVES
            @directives = {}
            parts.each { |part| add(*part.split(SPACE).reject(&:empty?)) }
            freeze
          end

          def allows?(kind, url, nonce: nil)
            return false if @nothing
            sources = @directives.values_at(*DIRECTIVES.fetch(kind)).compact.first or return true
            return true if WITH_NONCE.include?(kind) && nonce && sources.any? { |source| source.nonce?(nonce) }
            # With 'strict-dynamic' no URL makes a script allowed.
            return false if kind == :script && sources.any?(&:strict_dynamic?)
            sources.any? { |source| source.matches?(url, @page) }
          end

          def inspect = "#<Policy #{@directives.keys.join(" ")}>"

          private

          # Of two with one name the first counts.
          def add(name = nil, *sources)
            name = name&.downcase
            return if name.nil? || @directives.key?(name)
            @nothing ||= CHANGING.include?(name) || sources.size > MOST_SOURCES
            @directives[name] = sources.first(MOST_SOURCES).map { |source| Source.new(source) }
          end
        end
      end
    end
  end
end
