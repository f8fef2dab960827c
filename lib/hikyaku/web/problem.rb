# frozen_string_literal: true

require "json"
require "rack/utils"
require_relative "../error"

module Hikyaku
  class Web
    # A refusal: a status, one sentence, and for failures of authorization the OAuth error code that goes into the
    # challenge. Becomes a problem details document (RFC 9457).
    class Problem < StandardError
      include Error

      # Of every answer (Fetch standard, section "X-Content-Type-Options").
      NOSNIFF = {"x-content-type-options" => "nosniff"}.freeze

      attr_reader :status, :code, :reason, :headers

      def initialize(status, detail, code: nil, reason: nil, headers: {})
        super(detail)
        @status = status
        @code = code
        @reason = reason
        @headers = headers
      end

      def challenge? = @status == 401 || @status == 403 || !@code.nil?

      def response(more_headers = {})
        body = JSON.generate(type: "about:blank", title: Rack::Utils::HTTP_STATUS_CODES[@status], status: @status, detail: message.dup.force_encoding(Encoding::UTF_8).scrub)
        headers = {
          "content-type" => "application/problem+json",
          "content-length" => body.bytesize.to_s,
          "cache-control" => "no-store",
          **NOSNIFF
        }
        [@status, headers.merge(@headers, more_headers), [body]]
      end
    end

    # The WWW-Authenticate header of refusals (RFC 6750 section 3, RFC 9728 section 5.1; Mercure draft-08, section
    # "Error Responses"). Every 401 and 403 carries one, and a 400 about how the token is presented.
    module Challenge
      # A challenge needs at least one parameter.
      REALM = ["realm", "Mercure"].freeze

      class << self
        def header(code = nil, resource_metadata: nil)
          parameters = [
            (["error", code] if code),
            resource_metadata ? ["resource_metadata", resource_metadata] : REALM
          ].compact
          "Bearer #{parameters.map { |name, value| "#{name}=#{quoted(value)}" }.join(", ")}"
        end

        private

        # RFC 9110 section 5.6.4; what may not stand in a field value at all is left out.
        def quoted(value) = "\"#{value.b.gsub(/[^\x20-\x7E]/n, "").gsub(/["\\]/) { |char| "\\#{char}" }}\""
      end

      private_constant :REALM
    end
  end
end
