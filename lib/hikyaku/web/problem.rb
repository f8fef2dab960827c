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

      attr_reader :status
      attr_reader :code
      attr_reader :reason
      attr_reader :headers

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
  end
end
