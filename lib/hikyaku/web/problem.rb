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

      # @return [Integer] the HTTP status
      attr_reader :status
      # @return [String, nil] `invalid_request`, `invalid_token`, `insufficient_scope` (RFC 6750)
      attr_reader :code
      # @return [String, nil] what it is counted as, where neither status nor code say it
      attr_reader :reason
      # @return [Hash{String => String}]
      attr_reader :headers

      # @param status [Integer]
      # @param detail [String] one sentence for whoever sent the request
      # @param code [String, nil]
      # @param reason [String, nil]
      # @param headers [Hash{String => String}]
      def initialize(status, detail, code: nil, reason: nil, headers: {})
        super(detail)
        @status = status
        @code = code
        @reason = reason
        @headers = headers
      end

      # @return [Boolean] the answer carries a WWW-Authenticate challenge
      def challenge? = @status == 401 || @status == 403 || !@code.nil?

      # @return [Array(Integer, Hash, Array<String>)] a Rack response
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
