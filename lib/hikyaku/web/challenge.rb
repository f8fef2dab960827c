# frozen_string_literal: true

module Hikyaku
  class Web
    # The WWW-Authenticate header of refusals (RFC 6750 section 3, RFC 9728 section 5.1; Mercure draft-08, section
    # "Error Responses"). Every 401 and 403 carries one, and a 400 about how the token is presented.
    module Challenge
      # A challenge needs at least one parameter.
      REALM = ["realm", "Mercure"].freeze

      class << self
        def header(code = nil, resource_metadata: nil)
          parameters = [
            (["error", code] if code),
            resource_metadata ? ["resource_metadata", resource_metadata] : REALM
          ].compact
          "Bearer #{parameters.map { |name, value| "#{name}=#{quoted(value)}" }.join(", ")}"
        end

        private

        # RFC 9110 section 5.6.4; what may not stand in a field value at all is left out.
        def quoted(value) = "\"#{value.b.gsub(/[^\x20-\x7E]/n, "").gsub(/["\\]/) { |char| "\\#{char}" }}\""
      end

      private_constant :REALM
    end
  end
end
