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

          attr_reader :method
          attr_reader :authority
          attr_reader :target
          attr_reader :via

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

          def url = "http://#{@authority}#{@target.delete_prefix("*")}".b

          def expect_continue? = @expect_continue

          def head(close: false) = written("#{@method} #{@target} HTTP/1.1".b, close ? "close" : nil)

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
