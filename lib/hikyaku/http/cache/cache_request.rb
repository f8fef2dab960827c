# frozen_string_literal: true

require "digest"
require "set"
require_relative "header_fields"

module Hikyaku
  module HTTP
    class Cache
      # A request as the cache sees it.
      class CacheRequest
        # A request with such a field concerns something that only its sender knows.
        CONDITIONS = %w[if-match if-modified-since if-none-match if-range if-unmodified-since range].freeze
        # White space without a meaning, and quoted strings, in which it has one.
        SPACE = /"(?>(?:[^"\\]|\\.?)*)(?:"|\z)|[ \t]*,[ \t]*|[ \t]+/m
        # These fields identify no user. Any other field may do so.
        ANONYMOUS = %w[accept accept-charset accept-encoding accept-language cache-control connection device-memory dnt downlink dpr early-data ect expect host keep-alive
          max-forwards origin pragma priority proxy-connection purpose referer rtt save-data te traceparent upgrade-insecure-requests user-agent via viewport-width
          width x-request-id x-requested-with].to_set.merge(CONDITIONS).freeze
        # User agent client hints and fetch metadata: sec-ch-ua, sec-fetch-mode, sec-gpc.
        ANONYMOUS_PATTERN = /\Asec-(?:ch|fetch|gpc|purpose)(?:-|\z)/
        NO_IDENTITY = ""
        # These statuses describe the request or the server, and not the resource.
        TRANSIENT = [206, 304, 408, 412, 416, 425, 429, *500..599].freeze
        private_constant :CONDITIONS, :SPACE, :ANONYMOUS, :ANONYMOUS_PATTERN, :NO_IDENTITY, :TRANSIENT

        attr_reader :directives

        def initialize(method, headers)
          @method = method
          @headers = headers
          control = HeaderFields.values(headers, "cache-control")
          @directives = Directives.parse(control)
          @no_cache = @directives.include?("no-cache") || (control.empty? && Directives.parse(HeaderFields.values(headers, "pragma")).include?("no-cache"))
          @conditional = headers.any? { |name, _| CONDITIONS.include?(name) }
          @selecting = {}
        end

        def get? = @method == "GET"

        def head? = @method == "HEAD"

        def no_cache? = @no_cache

        def no_store? = @directives.include?("no-store")

        def conditional? = @conditional

        # Whether the cache leaves the request to the server.
        def bypasses_cache? = @conditional || !(get? || head?) || no_store?

        # Whether a response with this status outdates the stored ones.
        def supersedes?(status) = !@conditional && !no_store? && !TRANSIENT.include?(status)

        # The normalized value of a field that Vary may name: RFC 9111, section 4.1. A difference that may matter to the server remains one.
        def selecting(name)
          @selecting.fetch(name) do
            values = HeaderFields.values(@headers, name)
            @selecting[name] = values.empty? ? nil : normalized(values.map(&:b).join(",")).freeze
          end
        end

        # A digest of all fields that may identify a user: requests of different users have different ones.
        def identity
          @identity ||= begin
            fields = @headers.reject { |name, _| ANONYMOUS.include?(name) || name.match?(ANONYMOUS_PATTERN) }
            fields.empty? ? NO_IDENTITY : Digest::SHA256.digest(Marshal.dump(fields.map { |name, value| [name.b, value.b] }.group_by(&:first).sort))
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

      # The secondary key of a stored response: the request fields that its Vary names. RFC 9111, section 4.1.
      #
      # Beyond the RFC, a response that is not public answers only requests with the same {CacheRequest#identity}: a program may use one client for several users.
      class Vary
        MAX_FIELDS = 32
        MAX_BYTES = 4096
        NAME = /\A[!#$%&'*+\-.^_`|~0-9A-Za-z]+\z/
        FIELD_BYTES = 120 # of the objects that hold one field
        private_constant :MAX_FIELDS, :MAX_BYTES, :NAME, :FIELD_BYTES

        class << self
          # Nil if no other request matches.
          def of(headers, request)
            names = named(headers) or return
            new(names.map { |name| [name, request.selecting(name)] }, (request.identity unless public?(headers)))
          end

          private

          # The stricter of the two counts: RFC 9111, section 4.2.1.
          def public?(headers)
            directives = Directives.parse(HeaderFields.values(headers, "cache-control"))
            directives.include?("public") && !directives.include?("private")
          end

          def named(headers)
            text = HeaderFields.values(headers, "vary").map(&:b).join(",")
            return if text.bytesize > MAX_BYTES
            names = text.downcase.split(",").map(&:strip).uniq - [""]
            names.sort.freeze if names.size <= MAX_FIELDS && names.all? { |name| name != "*" && name.match?(NAME) }
          end
        end

        def initialize(selecting, identity)
          @selecting = selecting.each(&:freeze).freeze
          @identity = identity
          freeze
        end

        def names = @selecting.map(&:first)

        def matches?(request) = same_identity?(request) && @selecting.all? { |name, value| request.selecting(name) == value }

        def same_identity?(request) = @identity.nil? || request.identity == @identity

        def like?(other) = !other.nil? && names == other.names && @identity == other.identity

        def bytes = @selecting.sum(@identity.to_s.bytesize) { |name, value| name.bytesize + value.to_s.bytesize + FIELD_BYTES }

        def inspect = "#<#{self.class} #{names.join(" ")}>"

        protected

        attr_reader :identity
      end
    end
  end
end
