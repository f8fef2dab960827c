# frozen_string_literal: true

require "ipaddr"
require_relative "../../../error"
require_relative "../../../support/special_addresses"

module Hikyaku
  module HTTP
    class Proxy
      class Destination
        # One thing that is allowed: a range of addresses, an address or a name, at any port or at one.
        class Allowance
          RANGE = %r{\A[0-9A-Fa-f:.]+/[0-9]{1,3}\z}
          BRACKETS = /\A\[([^\[\]]+)\](?::([0-9]{1,5}))?\z/
          HOST = /\A([^:\/\s\[\]@]+)(?::([0-9]{1,5}))?\z/
          private_constant :RANGE, :BRACKETS, :HOST

          def self.parse(text)
            return new(range: IPAddr.new(text)) if text.match?(RANGE) || Support::SpecialAddresses.all_in(text)
            if (match = BRACKETS.match(text)) then new(range: IPAddr.new(match[1]), port: match[2]&.to_i)
            elsif (match = HOST.match(text)) then host(*match.captures)
            else raise IPAddr::InvalidAddressError
            end
          rescue IPAddr::Error
            raise ConfigError, "#{text[0, 100].inspect} cannot be allowed to the proxy: it is no range (127.0.0.0/8), address (127.0.0.1:3000) or name (app.test:3000)"
          end

          def self.host(host, port)
            return new(range: IPAddr.new(host), port: port&.to_i) if Support::SpecialAddresses.all_in(host)
            new(name: host.downcase.delete_suffix("."), port: port&.to_i)
          end
          private_class_method :host

          attr_reader :port

          def initialize(range: nil, name: nil, port: nil)
            @range = range
            @name = name
            @port = port
            freeze
          end

          def name?(name, port) = @name == name && port?(port)

          def address?(address, port) = !@range.nil? && @range.family == address.family && @range.include?(address) && port?(port)

          # Whether it is this address, or among others.
          def literal?(host)
            faces = Support::SpecialAddresses.all_in(host)
            !faces.nil? && address?(faces.first, @port)
          end

          private

          def port?(port) = @port.nil? || @port == port
        end
      end
    end
  end
end
