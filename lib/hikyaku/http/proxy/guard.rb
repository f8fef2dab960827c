# frozen_string_literal: true

require "digest"
require "openssl"

module Hikyaku
  module HTTP
    class Proxy
      # Who may use a proxy that others can reach. RFC 7617, in the field Proxy-Authorization.
      class Guard
        MOST_BYTES = 1_024
        private_constant :MOST_BYTES

        def initialize(users)
          users.each do |name, password|
            raise ArgumentError, "a user of the proxy needs a name without a colon, and a password" if name.empty? || name.include?(":") || password.empty?
          end
          @users = users.map { |name, password| [name.dup.freeze, digest("#{name}:#{password}")].freeze }.freeze
        end

        def user(request)
          fields = request.values("proxy-authorization")
          return unless fields.one? && fields.first.bytesize <= MOST_BYTES
          coded = fields.first[/\ABasic +([A-Za-z0-9+\/=]+)\z/i, 1] or return
          said = digest(coded.unpack1("m"))
          # All are compared, so that the time tells nothing.
          found = @users.map { |name, kept| OpenSSL.fixed_length_secure_compare(kept, said) ? name : nil }
          found.compact.first
        end

        def inspect = "#<#{self.class} #{@users.size} users>"

        private

        def digest(text) = Digest::SHA256.digest(text.b)
      end
    end
  end
end
