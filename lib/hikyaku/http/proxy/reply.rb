# frozen_string_literal: true

require_relative "forwarding"

module Hikyaku
  module HTTP
    class Proxy
      # What a browser is told: an answer that the client brought, as a whole or as it comes, or a word of the proxy's own.
      class Reply < Forwarding::Message
        attr_reader :status

        class << self
          # A sentence of the proxy's own.
          def plain(status, text, request, fields: [], last: false)
            body = "hikyaku proxy: #{text}\n".b
            headers = [["content-type", "text/plain; charset=utf-8"], ["cache-control", "no-store"]]
            [new(status, headers, request, length: body.bytesize, own: fields, last: last), body]
          end
        end

        def initialize(status, headers, request, length: nil, own: [], last: false)
          @status = status
          bodiless = request&.method == "HEAD" || status == 204 || status == 304
          @framing = framing_for(bodiless, length, request)
          @content_length = length
          @close = last || request.nil? || request.minor == 0 || !request.keep_alive?
          length_of_other = (bodiless && length && status != 204) ? [["Content-Length", length.to_s]] : []
          @headers = [*Forwarding::Fields.end_to_end(headers), *own, *framing_fields, *length_of_other].freeze
          freeze
        end

        def close? = @close

        def head = written("HTTP/1.1 #{@status} ", @close ? "close" : nil)

        private

        def framing_for(bodiless, length, request)
          return :none if bodiless
          return :length if length
          (request.nil? || request.minor == 0) ? :until_close : :chunked
        end
      end
    end
  end
end
