# frozen_string_literal: true

require_relative "../challenge"
require_relative "../check"

module Hikyaku
  class Doctor
    module Checks
      # Whether the cookie in which browsers send their token gets to the hub (Mercure draft-08, section "Presenting the
      # Access Token"), and whether a browser would send it at all.
      class Cookie < Check
        about "the cookie"

        SECURE = /\A__(?:Secure|Host)-/i
        private_constant :SECURE

        private

        def perform
          name = visit.metadata && visit.metadata["mercure_cookie"]
          return skipped("not checked: the metadata does not say what it is called") unless name.is_a?(String) && name.match?(/\A[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}\z/)
          [unsent(name), arrives(name)].compact
        end

        def unsent(name)
          return if place.tls? || place.local? || !name.match?(SECURE)
          warning("over plain HTTP no browser keeps or sends #{name}", :secure_cookie)
        end

        # What is no token is refused, if it is seen.
        def arrives(name)
          answer = client.request("POST", headers: {"cookie" => "#{name}=hikyaku-doctor", "origin" => place.origin}, form: [%w[topic urn:hikyaku:doctor]])
          return ok("#{name} gets to the hub") if seen?(answer)
          failed("#{name} does not get to the hub: pages cannot show their token", :cookie)
        end

        # A hub that does not know that the request is its own page's refuses that (400), for which it has to see the cookie.
        def seen?(answer)
          return true if Challenge.new(answer).error
          answer.status == 401 && answer.problem? && answer.detail.include?("not valid")
        end
      end
    end
  end
end
