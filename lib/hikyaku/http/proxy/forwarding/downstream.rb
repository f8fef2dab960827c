# frozen_string_literal: true

require_relative "message"

module Hikyaku
  module HTTP
    class Proxy
      module Forwarding
        # A response as it goes to the browser: a value.
        #
        # A body that is chunked or lasts until the server closes becomes chunked, so that the browser's connection can be kept; for a client of
        # HTTP/1.0, which knows no chunks and whose connections a proxy does not keep, it lasts until the proxy closes.
        class Downstream < Message
          attr_reader :status

          def initialize(response, request, via:, close: false, interim: false)
            @status = response.status
            @reason = response.reason
            @interim = interim
            @framing = framing_of(response, request)
            @content_length = response.content_length
            @close = !interim && (close || request.minor == 0 || !request.keep_alive?)
            @headers = [*Fields.end_to_end(response.headers), *own(response, request), *via_field(via, response.minor)].freeze
            freeze
          end

          def close? = @close

          def head = written("HTTP/1.1 #{@status} ".b << @reason, @close ? "close" : nil)

          def inspect = "#<#{self.class} #{@status}>"

          private

          def framing_of(response, request)
            case response.framing
            when :chunked, :until_close then (request.minor == 0) ? :until_close : :chunked
            else response.framing
            end
          end

          # What a GET would have had, a HEAD is told.
          def own(response, request)
            return framing_fields unless request.method == "HEAD" && !@interim && @status != 204 && @status != 304
            response.values("content-length").map { |value| ["Content-Length", value.to_i.to_s] }
          end
        end
      end
    end
  end
end
