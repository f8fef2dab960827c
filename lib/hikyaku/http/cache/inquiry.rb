# frozen_string_literal: true

require "digest"
require "set"
require_relative "directives"
require_relative "fields"

module Hikyaku
  module HTTP
    class Cache
      # A request, as the cache sees it.
      class Inquiry
        # With its own of these a request is about something that only its sender knows of.
        CONDITIONS = %w[if-match if-modified-since if-none-match if-range if-unmodified-since range].freeze
        # White space that says nothing, and, to be left alone, what is quoted.
        SPACE = /"(?>(?:[^"\\]|\\.?)*)(?:"|\z)|[ \t]*,[ \t]*|[ \t]+/m
        # Fields that name no user: what a program or browser is, accepts, prefers and does. Every other field may name one.
        ANONYMOUS = %w[accept accept-charset accept-encoding accept-language cache-control connection device-memory dnt downlink dpr early-data ect expect host keep-alive
          max-forwards origin pragma priority proxy-connection purpose referer rtt save-data te traceparent upgrade-insecure-requests user-agent via viewport-width
          width x-request-id x-requested-with].to_set.merge(CONDITIONS).freeze
        # User agent client hints, and what a browser says of the request itself: sec-fetch-mode, sec-ch-ua, sec-gpc.
        ANONYMOUS_PATTERN = /\Asec-(?:ch|fetch|gpc|purpose)(?:-|\z)/
        NOBODY = ""
        private_constant :CONDITIONS, :SPACE, :ANONYMOUS, :ANONYMOUS_PATTERN, :NOBODY

        attr_reader :directives

        def initialize(method, headers)
          @method = method
          @headers = headers
          control = Fields.values(headers, "cache-control")
          @directives = Directives.parse(control)
          @no_cache = @directives.include?("no-cache") || (control.empty? && Directives.parse(Fields.values(headers, "pragma")).include?("no-cache"))
          @conditional = headers.any? { |name, _| CONDITIONS.include?(name) }
          @selecting = {}
        end

        def get? = @method == "GET"

        def head? = @method == "HEAD"

        def no_cache? = @no_cache

        def conditional? = @conditional

        def passes_by? = @conditional || !(get? || head?) || @directives.include?("no-store")

        # RFC 9111, section 4.1: what may be a difference to the server stays one.
        def selecting(name)
          @selecting.fetch(name) do
            values = Fields.values(@headers, name)
            @selecting[name] = values.empty? ? nil : normalized(values.map(&:b).join(",")).freeze
          end
        end

        # Whose request it is, as far as its fields tell: the same for requests that say the same in every field that may name a user.
        def identity
          @identity ||= begin
            fields = @headers.reject { |name, _| ANONYMOUS.include?(name) || name.match?(ANONYMOUS_PATTERN) }
            fields.empty? ? NOBODY : Digest::SHA256.digest(Marshal.dump(fields.map { |name, value| [name.b, value.b] }.group_by(&:first).sort))
          end
        end

        def inspect = "#<#{self.class} #{@method}>"

        private

        def normalized(text)
          text.gsub(SPACE) do |found|
            next found if found.start_with?('"')
            found.include?(",") ? "," : " "
          end.strip
        end
      end
    end
  end
end
