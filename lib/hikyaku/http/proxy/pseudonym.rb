# frozen_string_literal: true

require "openssl"
require "securerandom"

module Hikyaku
  module HTTP
    class Proxy
      # The name that the proxy gives itself in the field Via, and by which it knows a request that comes back. It is another at each start and for
      # each server: two proxies in one chain are not taken for one, and no two servers can tell by it that they are asked by the same.
      #
      # RFC 9110, section 7.6.3.
      class Pseudonym
        NAME = "hikyaku"
        # Of what tells it from others: each request has it, in a slow uplink.
        DIGITS = 4
        private_constant :NAME, :DIGITS

        def initialize
          @key = SecureRandom.bytes(16)
        end

        def for(authority) = "#{NAME}-#{OpenSSL::HMAC.hexdigest("SHA256", @key, authority.to_s)[0, DIGITS]}"

        def inspect = "#<#{self.class}>"
      end
    end
  end
end
