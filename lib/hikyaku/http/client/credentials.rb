# frozen_string_literal: true

require_relative "../errors"

module Hikyaku
  module HTTP
    class Client
      # What stands before the @ in a URL, as a field says it.
      module Credentials
        ESCAPE = /%(\h\h)/
        STRAY = /%(?!\h\h)/
        private_constant :ESCAPE, :STRAY

        module_function

        # RFC 7617.
        def basic(address)
          user, password = address.user_information
          user && -"Basic #{["#{decoded(user, address)}:#{decoded(password, address)}"].pack("m0")}"
        end

        def decoded(text, address)
          return text.b.gsub(ESCAPE) { [$1].pack("H2") } unless text.match?(STRAY)
          raise InvalidURL, "the user or password in the URL of #{address.origin} is not percent-encoded as it should be"
        end
        private_class_method :decoded
      end
    end
  end
end
