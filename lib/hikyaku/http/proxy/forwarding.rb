# frozen_string_literal: true

require_relative "forwarding/answer"
require_relative "forwarding/authority"
require_relative "forwarding/downstream"
require_relative "forwarding/fields"
require_relative "forwarding/refused"
require_relative "forwarding/upstream"

module Hikyaku
  module HTTP
    class Proxy
      # What a proxy makes of requests and responses. Nothing is passed on as it came: every message is written anew from what the parser
      # understood, so that nobody behind the proxy can understand another. Pure functions.
      #
      #     upstream = Hikyaku::HTTP::Proxy::Forwarding.request(request)
      #     socket.write(upstream.head)
      #     socket.write(upstream.body(piece))   # for each piece of the body
      #     socket.write(upstream.finish)
      #
      # What ends at each hop is removed: Connection and the fields that it names, Keep-Alive, Proxy-*, TE, Trailer, Transfer-Encoding, Upgrade,
      # HTTP2-Settings. So nothing but HTTP comes of a request, and trailers, which the parser drops, are lost. Host and what frames the
      # body are always the proxy's own, whether Connection names them or not.
      #
      # RFC 9110, sections 7.6 and 10.1.1; RFC 9112, sections 3.2, 6, 7.1 and 9.
      module Forwarding
        VIA = "hikyaku"
        HOPS_COUNTED = %w[OPTIONS TRACE].freeze
        HOPS = /\A[0-9]{1,9}\z/n
        SCHEME = /\A[^:]*/n
        private_constant :HOPS_COUNTED, :HOPS, :SCHEME

        class << self
          def request(request, via: VIA)
            authority = authority_of(request)
            refuse(400, "a #{request.method} request with a body is not passed on: servers do not agree whether it has one") if body_forbidden?(request)
            refuse(417, "what the field Expect asks for is not known here") unless expectations(request).all? { |each| each.casecmp?("100-continue") }
            via = via.for(authority) if via.respond_to?(:for)
            refuse(508, "the request has passed this proxy before") if via && Fields.received_by?(request.headers, via)
            hops = hops_of(request)
            return Answer.new(request) if hops == 0
            Upstream.new(request, authority, hops: hops && hops - 1, via: via)
          end

          def tunnel(request)
            refuse(400, "a #{request.method} request asks for no tunnel") unless request.method == "CONNECT"
            Authority.parse(request.target, port: nil)
          end

          def response(response, request, via: VIA, close: false)
            raise ArgumentError, "an interim response is passed on by interim()" if response.interim?
            check_status(response.status)
            Downstream.new(response, request, via: via, close: close)
          end

          def check_status(status)
            refuse(502, "the server switches protocols, which it was not asked to") if status == 101
            refuse(502, "the server asks for the authentication that proxies ask for") if status == 407
          end

          def interim(response, request, via: VIA)
            raise ArgumentError, "a final response is passed on by response()" unless response.interim?
            return if request.minor == 0 || (response.status == 100 && !request.expect_continue?)
            Downstream.new(response, request, via: via, interim: true).head
          end

          private

          def refuse(status, text) = raise(Refused.new(status, text))

          def authority_of(request)
            refuse(400, "a proxy is asked with a whole URL, or with CONNECT") unless request.form == :absolute
            scheme = request.target[SCHEME].downcase
            refuse(400, "an https URL is asked for through a tunnel, with CONNECT") if scheme == "https"
            refuse(400, "no URLs but those of http are asked for here") unless scheme == "http"
            Authority.parse(request.authority, port: Authority::HTTP)
          end

          def body_forbidden?(request)
            Upstream::WITHOUT_BODY.include?(request.method) && (request.framing == :chunked || request.content_length.to_i > 0)
          end

          def expectations(request) = request.values("expect").flat_map { |value| value.split(",") }.map(&:strip).reject(&:empty?)

          # RFC 9110, section 7.6.2.
          def hops_of(request)
            return unless HOPS_COUNTED.include?(request.method)
            values = request.values("max-forwards")
            return if values.empty?
            refuse(400, "the field Max-Forwards is no one number") unless values.one? && values.first.match?(HOPS)
            values.first.to_i
          end
        end
      end
    end
  end
end
