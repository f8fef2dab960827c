# frozen_string_literal: true

require "ipaddr"

module Hikyaku
  class Hub
    # Addresses of clients, as text: as servers and proxies write them, or anything else. IPv4 that is mapped to IPv6 (RFC 4291,
    # section 2.5.5.2) is IPv4.
    module ClientAddress
      # Bits of an IPv6 address within which one host takes as many addresses as it likes.
      PREFIX = 64
      private_constant :PREFIX

      module_function

      def forms(text)
        return [] if text.nil? || text.include?("/")
        address = IPAddr.new(text)
        address.ipv4_mapped? ? [address, address.native] : [address]
      rescue IPAddr::Error
        []
      end

      def parse(text) = forms(text).last

      def loopback?(text) = parse(text)&.loopback? || false

      # Under which name a client is counted: its address, but of an IPv6 address the /64.
      def client(text)
        return text unless text.include?(":")
        address = parse(text) or return text
        address.ipv4? ? address.to_s : "#{address.hton.unpack1("H#{PREFIX / 4}")}/#{PREFIX}"
      end
    end
  end
end
