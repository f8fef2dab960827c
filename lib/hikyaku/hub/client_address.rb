# frozen_string_literal: true

require "ipaddr"

module Hikyaku
  class Hub
    # Parses the addresses of clients, which come as text from servers and proxies and may be anything. An IPv4 address that is mapped
    # to IPv6 (RFC 4291, section 2.5.5.2) counts as IPv4.
    module ClientAddress
      # Bits of the IPv6 prefix within which one host can take any number of addresses.
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

      # The name under which a client is counted: its address, or the /64 of an IPv6 address.
      def client(text)
        return text unless text.include?(":")
        address = parse(text) or return text
        address.ipv4? ? address.to_s : "#{address.hton.unpack1("H#{PREFIX / 4}")}/#{PREFIX}"
      end
    end
  end
end
