# frozen_string_literal: true

require_relative "../../error"

module Hikyaku
  module HTTP
    class Parser
      # A message that is no HTTP, that two readers could understand differently, or that is beyond a limit.
      class Malformed < StandardError
        include Error

        # As in ext/hikyaku/engine/wire/hk_http1.h.
        REASONS = {
          line_end: [400, "a line does not end with CRLF"],
          start_line: [400, "the start line does not have its three parts, with one space between them"],
          method: [400, "the method is not a token"],
          method_too_long: [501, "the method is longer than any that is known"],
          target: [400, "the request target is malformed, or has not the form that its method asks for"],
          target_too_long: [414, "the request target is too long"],
          version: [505, "the version is neither HTTP/1.0 nor HTTP/1.1"],
          status_code: [400, "the status code does not have three digits from 100 to 999"],
          reason: [400, "the reason phrase has a byte that is not allowed"],
          line_too_long: [431, "a line of the head is too long"],
          head_too_large: [431, "the head is too large"],
          too_many_headers: [431, "there are too many header fields"],
          folded: [400, "a header line begins with white space"],
          header_name: [400, "the name of a header field is not a token with a colon right after it"],
          header_value: [400, "the value of a header field has a byte that is not allowed"],
          host_missing: [400, "the Host field is missing"],
          host_repeated: [400, "there is more than one Host field"],
          host: [400, "the value of the Host field is malformed"],
          content_length: [400, "the value of the Content-Length field is not a number below 2^64"],
          content_length_repeated: [400, "there is more than one Content-Length field"],
          framing_conflict: [400, "there are both Content-Length and Transfer-Encoding"],
          transfer_encoding: [400, "the transfer coding is malformed, does not end with one chunked, or is not of this version"],
          transfer_encoding_unknown: [501, "there are transfer codings other than chunked"],
          body_forbidden: [400, "the message may have no body, but says that it has one"],
          upgrade_missing: [400, "the response switches protocols, but does not say to which"],
          chunk_size: [400, "the size of a chunk is not a hexadecimal number below 2^64"],
          chunk_extension: [400, "the extension of a chunk is malformed"],
          chunk_line_too_long: [400, "the line with the size of a chunk is too long"],
          chunk_end: [400, "the data of a chunk does not end with CRLF"],
          trailer_forbidden: [400, "a trailer field would change the framing"],
          trailers_too_large: [431, "the trailer fields are too large"],
          truncated: [400, "the connection was closed in the middle of a message"]
        }.freeze
        private_constant :REASONS

        # @return [Symbol] for example :header_name
        attr_reader :reason
        # @return [Integer] the status that suits as an answer, when it was a request
        attr_reader :status

        # @param reason [Symbol]
        def initialize(reason)
          @reason = reason
          @status, text = REASONS.fetch(reason)
          super("the HTTP message cannot be used: #{text}")
        end
      end
    end
  end
end
