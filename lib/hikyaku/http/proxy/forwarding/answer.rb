# frozen_string_literal: true

require_relative "message"

module Hikyaku
  module HTTP
    class Proxy
      module Forwarding
        # What the proxy answers to a request that has gone as far as it may: a value.
        #
        # RFC 9110, sections 7.6.2, 9.3.7 and 9.3.8.
        class Answer < Message
          ALLOW = "GET, HEAD, POST, PUT, DELETE, OPTIONS, TRACE, CONNECT"
          # What a TRACE does not show.
          SECRET = /\A(?:authorization|cookie2?|proxy-.*|set-cookie2?|x-.*(?:key|secret|token).*)\z/in
          private_constant :ALLOW, :SECRET

          attr_reader :status
          attr_reader :content

          def initialize(request)
            @status = 200
            @framing = :length
            @close = request.minor == 0 || !request.keep_alive?
            @content = (request.method == "TRACE") ? seen(request).freeze : ""
            @content_length = @content.bytesize
            kind = (request.method == "TRACE") ? ["Content-Type", "message/http"] : ["Allow", ALLOW]
            @headers = [kind, *framing_fields].freeze
            freeze
          end

          def close? = @close

          def head = written("HTTP/1.1 #{@status} OK", @close ? "close" : nil)

          def inspect = "#<#{self.class} #{@status}>"

          private

          def seen(request)
            "#{request.method} #{request.target} HTTP/1.#{request.minor}\r\n".b << Fields.write(request.headers.reject { |name, _| name.match?(SECRET) }) << "\r\n"
          end
        end
      end
    end
  end
end
