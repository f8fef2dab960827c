# frozen_string_literal: true

require_relative "message"

module Hikyaku
  module HTTP
    class Proxy
      module Forwarding
        # A request as it goes to the server: a value.
        class Upstream < Message
          # About the body of such a request no two servers agree.
          WITHOUT_BODY = %w[GET HEAD TRACE].freeze

          # @return [String]
          attr_reader :method
          # @return [Authority] who is asked
          attr_reader :authority
          # @return [String] path and query exactly as the browser wrote them; "/" where there is no path, "*" for OPTIONS without one
          attr_reader :target
          # @return [String, nil] how the proxy calls itself to this server
          attr_reader :via

          # @api private
          def initialize(request, authority, hops:, via:)
            @method = request.method
            @authority = authority
            @via = via
            @target = target_of(request)
            @expect_continue = request.expect_continue?
            # These have none: what says so is not passed on, either.
            @framing = WITHOUT_BODY.include?(@method) ? :none : request.framing
            @content_length = (@framing == :length) ? request.content_length : nil
            @headers = [["Host", authority.to_s], *passed_on(request, hops), *own(hops), *via_field(via, request.minor)].freeze
            freeze
          end

          # @return [String] the URL that was asked for
          def url = "http://#{@authority}#{@target.delete_prefix("*")}".b

          # @return [Boolean] whether the browser waits for 100 (Continue) before it sends the body
          def expect_continue? = @expect_continue

          # @param close [Boolean] whether the connection is used for nothing after this
          # @return [String] binary
          def head(close: false) = written("#{@method} #{@target} HTTP/1.1".b, close ? "close" : nil)

          # @return [String] without what may be secret
          def inspect = "#<#{self.class} #{@method} #{@authority}>"

          private

          def target_of(request)
            path = request.path
            path = (request.method == "OPTIONS" && request.query.nil?) ? "*" : "/" if path.empty?
            request.query ? "#{path}?#{request.query}".b : path
          end

          def passed_on(request, hops) = Fields.end_to_end(request.headers, without: hops ? %w[host expect max-forwards] : %w[host expect])

          def own(hops)
            fields = framing_fields
            fields += [["Expect", "100-continue"]] if @expect_continue
            fields += [["Max-Forwards", hops.to_s]] if hops
            fields
          end
        end
      end
    end
  end
end
