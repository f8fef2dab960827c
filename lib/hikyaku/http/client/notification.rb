# frozen_string_literal: true

require_relative "../errors"

module Hikyaku
  module HTTP
    class Client
      # What an instrumenter is told of one request: `request.hikyaku_http`, once, by whoever waits for the answer first, and while he does. Of a stream that is
      # until its head is there.
      #
      #     method, url           what was asked for; the URL is without query, as that may be secret
      #     status, bytes         of the answer; bytes of its body, not of a stream
      #     cached                whether nobody was asked
      #     seconds               since it was begun, which may be before anybody waited
      #     error                 the name of its class, where there is no answer; its message has the whole URL, and is not told
      class Notification
        NAME = "request.hikyaku_http"
        QUERY = /\?.*/m
        private_constant :NAME, :QUERY

        def initialize(instrumenter, request, now)
          @instrumenter = instrumenter
          @request = request
          @began = now
        end

        def around(driver, whole:)
          payload = {method: @request.method, url: @request.address.url.sub(QUERY, ""), status: nil, bytes: nil, cached: nil, seconds: nil, error: nil}
          outcome = nil
          @instrumenter.instrument(NAME, payload) do
            outcome = yield
            payload[:seconds] = driver.now - @began
            tell(payload, outcome)
            payload[:bytes] = outcome.body.bytesize if whole && outcome.error.nil?
          end
          outcome || yield
        end

        private

        def tell(payload, outcome)
          error = outcome.error or return payload.update(status: outcome.status, cached: outcome.cached?)
          payload.update(status: (error.status if error.is_a?(BadStatus)), error: error.class.name)
        end
      end
    end
  end
end
