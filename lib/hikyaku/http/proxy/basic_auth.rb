# frozen_string_literal: true

require "digest"
require "openssl"

module Hikyaku
  module HTTP
    class Proxy
      # Authenticates the users of a proxy by the field Proxy-Authorization. RFC 7617.
      class BasicAuth
        CHALLENGE = ["Proxy-Authenticate", 'Basic realm="hikyaku proxy", charset="UTF-8"'].freeze
        MAX_BYTES = 1_024
        private_constant :MAX_BYTES

        def initialize(users)
          users.each do |name, password|
            raise ArgumentError, "a user of the proxy needs a name without a colon, and a password" if name.empty? || name.include?(":") || password.empty?
          end
          @users = users.map { |name, password| [name.dup.freeze, digest("#{name}:#{password}")].freeze }.freeze
        end

        # The user's name, or nil.
        def user(request)
          fields = request.values("proxy-authorization")
          return unless fields.one? && fields.first.bytesize <= MAX_BYTES
          encoded = fields.first[/\ABasic +([A-Za-z0-9+\/=]+)\z/i, 1] or return
          given = digest(encoded.unpack1("m"))
          # It compares all users, so that the duration tells nothing.
          @users.map { |name, expected| OpenSSL.fixed_length_secure_compare(expected, given) ? name : nil }.compact.first
        end

        def inspect = "#<#{self.class} #{@users.size} users>"

        private

        def digest(text) = Digest::SHA256.digest(text.b)
      end
    end
  end
end
