# frozen_string_literal: true

require "ipaddr"
require "socket"

module Hikyaku
  class Web
    class Authorization
      # Which addresses a key set may be fetched from (Mercure draft-08, section "Protected Resource Metadata and
      # Authorization Server Selection": precautions against server-side request forgery).
      #
      # A host name must lead to public addresses only: otherwise whoever controls its DNS could turn the hub against
      # the network that it stands in. A host that is itself written as an address, or localhost, is what the operator
      # chose, and is used as it is. An authorization server in a private network is therefore configured by its
      # address, or its key set is given as a file.
      module AddressPolicy
        # The host leads where it may not lead, or nowhere.
        class Refused < StandardError
        end

        RESERVED = %w[
          0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.168.0.0/16
          198.18.0.0/15 224.0.0.0/4 240.0.0.0/4
          ::/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/32 2002::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8
        ].map { |range| IPAddr.new(range) }.freeze
        LOOPBACK = %w[127.0.0.0/8 ::1/128].map { |range| IPAddr.new(range) }.freeze
        SYSTEM = ->(host) { Addrinfo.getaddrinfo(host, nil, nil, :STREAM).map(&:ip_address) }

        class << self
          # @return [Boolean] whether the host is written as this machine itself
          def loopback?(host)
            host.casecmp?("localhost") || within?(LOOPBACK, literal(host))
          end

          # @param host [String] without brackets
          # @param resolver [#call] from a host name to addresses
          # @return [Array<String>] addresses that may be connected to, in order of preference
          # @raise [Refused]
          def addresses(host, resolver: SYSTEM)
            return [host] if literal(host)
            found = resolver.call(host).uniq
            raise Refused, "its host has no address" if found.empty?
            allowed = host.casecmp?("localhost") ? LOOPBACK : nil
            return found if found.all? { |address| allowed ? within?(allowed, literal(address)) : public?(address) }
            raise Refused, "its host leads to a private address; configure the address itself, or a file"
          rescue SocketError
            raise Refused, "its host has no address"
          end

          private

          def public?(address)
            ip = literal(address)
            ip && !within?(RESERVED, ip)
          end

          def literal(text)
            ip = IPAddr.new(text)
            ip.ipv4_mapped? ? ip.native : ip
          rescue IPAddr::Error
            nil
          end

          def within?(ranges, ip) = !ip.nil? && ranges.any? { |range| range.family == ip.family && range.include?(ip) }
        end

        private_constant :RESERVED, :LOOPBACK, :SYSTEM
      end
    end
  end
end
