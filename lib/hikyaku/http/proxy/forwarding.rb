# frozen_string_literal: true

require "openssl"
require "securerandom"
require_relative "../../support/hop_by_hop"
require_relative "../address"
require_relative "../origin"
require_relative "errors"

module Hikyaku
  module HTTP
    class Proxy
      # Turns the messages that the proxy received into the messages that it sends. It writes every message anew from the parsed one, so that the recipient cannot
      # understand another. Pure functions.
      #
      #     upstream = Hikyaku::HTTP::Proxy::Forwarding.request(request)
      #     socket.write(upstream.head)
      #     socket.write(upstream.body(piece))   # for each piece of the body
      #     socket.write(upstream.finish)
      #
      # It removes the hop-by-hop fields and all Proxy-* fields. The proxy makes Host and the framing fields itself, even if Connection names them. The parser
      # drops trailers.
      #
      # RFC 9110, sections 7.6 and 10.1.1; RFC 9112, sections 3.2, 6, 7.1 and 9.
      module Forwarding
        VIA = "hikyaku"
        # In Content-Type, or in the list of Accept.
        EVENT_STREAM = %r{(?:\A|,)\s*text/event-stream\s*(?:[;,]|\z)}i
        ALLOW = "GET, HEAD, POST, PUT, DELETE, OPTIONS, TRACE, CONNECT"
        COUNTS_HOPS = %w[OPTIONS TRACE].freeze
        HOPS = /\A[0-9]{1,9}\z/n
        SCHEME = /\A[^:]*/n
        # DNS labels, which in practice contain underscores, or an IP address.
        AUTHORITY = /\A(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?)(?::([0-9]{0,5}))?\z/n
        MAX_HOST_BYTES = 255
        # A TRACE does not show these.
        SECRET = /\A(?:authorization|cookie2?|proxy-.*|set-cookie2?|x-.*(?:key|secret|token).*)\z/in
        NOT_FORWARDED = [*Support::HopByHop::FIELDS, "content-length", "http2-settings"].to_h { |name| [name, true] }.freeze
        PROXY = "proxy-"
        private_constant :EVENT_STREAM, :ALLOW, :COUNTS_HOPS, :HOPS, :SCHEME, :AUTHORITY, :MAX_HOST_BYTES, :SECRET, :NOT_FORWARDED, :PROXY

        class << self
          def request(request, via: VIA)
            origin = origin_of(request)
            refuse(400, "a #{request.method} request has a body, which servers interpret differently") if body_forbidden?(request)
            refuse(417, "the field Expect has an unknown expectation") unless expectations(request).all? { |each| each.casecmp?("100-continue") }
            via = via.for(origin) if via.respond_to?(:for)
            refuse(508, "the request has passed this proxy before") if via && received_by?(request, via)
            hops = hops_of(request)
            (hops == 0) ? last_hop(request) : UpstreamRequest.new(request, origin, hops: hops && hops - 1, via: via)
          end

          # The host and the port of a CONNECT request, as an {Origin}.
          def tunnel(request)
            refuse(400, "the method #{request.method} opens no tunnel") unless request.method == "CONNECT"
            parse_authority(request.target, port: nil)
          end

          def response(response, request, via: VIA, close: false)
            raise ArgumentError, "this response is interim; forward it with interim()" if response.interim?
            check_status(response.status)
            DownstreamResponse.relayed(response, request, via: via, last: close)
          end

          def check_status(status)
            refuse(502, "the server switched protocols without a request to do so") if status == 101
            refuse(502, "the server demanded proxy authentication, which only a proxy may") if status == 407
          end

          def interim(response, request, via: VIA)
            raise ArgumentError, "this response is final; forward it with response()" unless response.interim?
            return if request.minor == 0 || (response.status == 100 && !request.expect_continue?)
            DownstreamResponse.relayed(response, request, via: via).head
          end

          def event_stream?(values) = values.any? { |value| value.match?(EVENT_STREAM) }

          # RFC 9110, section 7.6.1.
          def end_to_end(headers, except: [], lower_case: false)
            named = Support::HopByHop.named(headers.filter_map { |name, value| value if name.casecmp?("connection") })
            dropped = NOT_FORWARDED
            dropped = dropped.merge([*except, *named].to_h { |name| [name, true] }) if except.any? || named.any?
            headers.filter_map do |field|
              name = field.first.downcase
              next if dropped.key?(name) || name.start_with?(PROXY)
              lower_case ? [name, field.last] : field
            end
          end

          def write(headers) = headers.map { |name, value| "#{name}: #{value}\r\n".b }.join.b

          private

          def refuse(status, text) = raise(StatusError.new(status, "the proxy does not forward the message: #{text}"))

          def origin_of(request)
            refuse(400, "the target is no absolute URL; a proxy needs one, or the method CONNECT") unless request.form == :absolute
            scheme = request.target[SCHEME].downcase
            refuse(400, "an https URL needs a tunnel, which the method CONNECT opens") if scheme == "https"
            refuse(400, "the URL is no http URL") unless scheme == "http"
            parse_authority(request.authority, port: Origin::PORTS.fetch("http"))
          end

          def parse_authority(text, port:)
            refuse(400, "the URL has user information") if text.include?("@")
            host, digits = AUTHORITY.match(text)&.captures
            refuse(400, "the host of the URL is invalid") unless host && host.bytesize <= MAX_HOST_BYTES
            number = digits.to_s.empty? ? port : digits.to_i
            refuse(400, "the port of the URL is invalid") unless number&.between?(1, 65_535)
            Origin.new("http", host.downcase, number)
          end

          def body_forbidden?(request)
            UpstreamRequest::WITHOUT_BODY.include?(request.method) && (request.framing == :chunked || request.content_length.to_i > 0)
          end

          def expectations(request) = request.values("expect").flat_map { |value| value.split(",") }.map(&:strip).reject(&:empty?)

          def received_by?(request, name) = request.values("via").any? { |value| value.split(",").any? { |member| member.split[1] == name } }

          # RFC 9110, section 7.6.2.
          def hops_of(request)
            return unless COUNTS_HOPS.include?(request.method)
            values = request.values("max-forwards")
            return if values.empty?
            refuse(400, "the field Max-Forwards is not one number") unless values.one? && values.first.match?(HOPS)
            values.first.to_i
          end

          # RFC 9110, sections 7.6.2, 9.3.7 and 9.3.8.
          def last_hop(request)
            return DownstreamResponse.new(200, [["Allow", ALLOW]], request, reason: "OK", content: "") unless request.method == "TRACE"
            seen = "TRACE #{request.target} HTTP/1.#{request.minor}\r\n".b << write(request.headers.reject { |name, _| name.match?(SECRET) }) << "\r\n"
            DownstreamResponse.new(200, [["Content-Type", "message/http"]], request, reason: "OK", content: seen)
          end
        end

        # Names the proxy in the field Via. The name differs between runs, so that a chain of two proxies is no loop, and between servers, so that they cannot
        # recognise a common client by it.
        #
        # RFC 9110, section 7.6.3.
        class ViaName
          # Every request carries them on a slow uplink.
          DIGITS = 4
          private_constant :DIGITS

          def initialize
            @key = SecureRandom.bytes(16)
          end

          def for(origin) = "#{VIA}-#{OpenSSL::HMAC.hexdigest("SHA256", @key, origin.authority)[0, DIGITS]}"

          def inspect = "#<#{self.class}>"
        end

        # A message as the proxy writes it. RFC 9112, sections 6 and 7.1.
        class Message
          LAST_CHUNK = "0\r\n\r\n"
          private_constant :LAST_CHUNK

          attr_reader :framing, :content_length

          def body(piece)
            return "" if piece.empty?
            return piece unless @framing == :chunked
            "#{piece.bytesize.to_s(16)}\r\n".b << piece.b << "\r\n"
          end

          def finish = (@framing == :chunked) ? LAST_CHUNK : ""

          private

          def serialize(start_line, fields, close:)
            "#{start_line}\r\n".b << Forwarding.write(close ? [*fields, %w[Connection close]] : fields) << "\r\n"
          end

          def framing_fields
            case @framing
            when :length then [["Content-Length", @content_length.to_s]]
            when :chunked then [["Transfer-Encoding", "chunked"]]
            else []
            end
          end

          def via_field(name, minor) = name ? [["Via", "1.#{minor} #{name}"]] : []
        end
        private_constant :Message

        # A request as it goes to the server: a value.
        class UpstreamRequest < Message
          # Servers do not agree about bodies of these requests.
          WITHOUT_BODY = %w[GET HEAD TRACE].freeze
          NOT_FORWARDED = %w[host expect].freeze
          private_constant :NOT_FORWARDED

          attr_reader :method, :origin, :target, :via

          def initialize(request, origin, hops:, via:)
            @request = request
            @method = request.method
            @origin = origin
            @via = via
            @hops = hops
            @target = target_of(request)
            @framing = WITHOUT_BODY.include?(@method) ? :none : request.framing
            @content_length = (@framing == :length) ? request.content_length : nil
            freeze
          end

          def url = "http://#{@origin.authority}#{@target.delete_prefix("*")}".b

          def address = Address.exact(@origin.authority, @target)

          # The fields for {Client#open}, which adds Host.
          def headers = [*Forwarding.end_to_end(@request.headers, except: NOT_FORWARDED, lower_case: true), *via_field(@via, @request.minor).map { |name, value| [name.downcase, value] }]

          def head(close: false)
            passed_on = Forwarding.end_to_end(@request.headers, except: @hops ? [*NOT_FORWARDED, "max-forwards"] : NOT_FORWARDED)
            serialize("#{@method} #{@target} HTTP/1.1", [["Host", @origin.authority], *passed_on, *framing_fields, *own, *via_field(@via, @request.minor)], close: close)
          end

          def inspect = "#<#{self.class} #{@method} #{@origin.authority}>"

          private

          def target_of(request)
            path = request.path
            path = (request.method == "OPTIONS" && request.query.nil?) ? "*" : "/" if path.empty?
            request.query ? "#{path}?#{request.query}".b : path
          end

          def own
            fields = @request.expect_continue? ? [["Expect", "100-continue"]] : []
            @hops ? [*fields, ["Max-Forwards", @hops.to_s]] : fields
          end
        end

        # A response as it goes to the browser: a value. A body without a length becomes chunked, which lets the browser's connection persist. HTTP/1.0 has no
        # chunks, and the proxy keeps no connections of such clients: their body ends with the connection.
        class DownstreamResponse < Message
          attr_reader :status, :content

          # A response that a server gave.
          def self.relayed(response, request, via:, last: false)
            length = response["content-length"]&.to_i unless response.interim? || response.status == 304
            new(response.status, response.headers, request, reason: response.reason, length: length, via: via, minor: response.minor, last: last)
          end

          # A sentence from the proxy itself.
          def self.text(status, text, request, fields: [], last: false)
            headers = [["content-type", "text/plain; charset=utf-8"], ["cache-control", "no-store"]]
            new(status, headers, request, content: "hikyaku proxy: #{text}\n".b, own: fields, last: last)
          end

          def initialize(status, headers, request, reason: "", content: nil, length: nil, own: [], via: nil, minor: 1, last: false)
            interim = status < 200
            bodiless = interim || status == 204 || status == 304 || request&.method == "HEAD"
            @status = status
            @reason = reason
            @content = (bodiless || content.nil?) ? "" : content
            @content_length = (content && status != 304) ? content.bytesize : length
            old = request.nil? || request.minor == 0
            @framing = bodiless ? :none : framing_for(old)
            @close = !interim && (last || old || !request.keep_alive?)
            told = (bodiless && @content_length && status != 204) ? [["Content-Length", @content_length.to_s]] : framing_fields
            @fields = [*Forwarding.end_to_end(headers), *own, *told, *via_field(via, minor)].freeze
            freeze
          end

          def close? = @close

          def head = serialize("HTTP/1.1 #{@status} ".b << @reason, @fields, close: @close)

          def inspect = "#<#{self.class} #{@status}>"

          private

          def framing_for(old)
            return :length if @content_length
            old ? :until_close : :chunked
          end
        end
      end
    end
  end
end
