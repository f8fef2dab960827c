# frozen_string_literal: true

require_relative "../address"
require_relative "../errors"

module Hikyaku
  module HTTP
    class Client
      # Where an answer leads, and what is asked there: RFC 9110, section 15.4.
      class Redirection
        STATUSES = [301, 302, 303, 307, 308].freeze
        # After these a POST becomes a GET.
        BECOMES_GET = [301, 302].freeze
        # What is meant for one origin is not told to another.
        CONFIDENTIAL = %w[authorization cookie proxy-authorization].freeze
        # A request that has no body any more says nothing of one.
        OF_A_BODY = /\Acontent-|\A(?:digest|repr-digest|last-modified)\z/
        private_constant :STATUSES, :BECOMES_GET, :CONFIDENTIAL, :OF_A_BODY

        def self.elsewhere?(status, headers) = STATUSES.include?(status) && !headers.assoc("location").nil?

        def initialize(most)
          @most = most
        end

        def follow(request, status, location, before:, own_cookie:)
          address = address(request, location)
          refuse(request, "more than #{@most} redirects") if before >= @most
          refuse(request, "a redirect from https to #{address.url}, where everybody reads along") if request.address.origin.tls? && !address.origin.tls?
          followed(request, status, address, headers(request, address, own_cookie))
        end

        private

        def address(request, location)
          Address.parse(location.dup.force_encoding(Encoding::UTF_8), base: request.address)
        rescue InvalidURL => error
          raise BadRedirect.new("#{request.address.url} redirects to what is no URL: #{error.message}", url: request.address.url)
        end

        def headers(request, address, own_cookie)
          dropped = ["host"]
          dropped << "cookie" unless own_cookie
          dropped.concat(CONFIDENTIAL) unless address.origin == request.address.origin
          request.headers.reject { |field| dropped.include?(field.first) }
        end

        def followed(request, status, address, headers)
          if (status == 303 && request.method != "HEAD") || (BECOMES_GET.include?(status) && request.method == "POST")
            return request.redirected(address, method: "GET", headers: headers.reject { |field| field.first.match?(OF_A_BODY) }, body: nil)
          end
          refuse(request, "a redirect with a body that was read already") if request.once?
          request.redirected(address, headers: headers, body: request.body)
        end

        def refuse(request, why) = raise(BadRedirect.new("#{request.address.url} leads to #{why}", url: request.address.url))
      end
    end
  end
end
