# frozen_string_literal: true

require "ipaddr"
require "socket"

module Hikyaku
  module Support
    # Which addresses do not belong to some host of the internet, and which addresses are embedded in others.
    #
    # RFC 6890 and the IANA registries that it made; RFC 4291, 6052, 8215, 3056 and 4380 for addresses within an address of IPv6.
    module SpecialAddresses
      # By kind; the first that fits counts.
      RANGES = {
        metadata: %w[169.254.169.254/32 100.100.100.200/32 168.63.129.16/32 192.0.0.192/32 fd00:ec2::254/128 fd20:ce::254/128],
        loopback: %w[127.0.0.0/8 ::1/128],
        unspecified: %w[0.0.0.0/8 ::/128],
        link_local: %w[169.254.0.0/16 fe80::/10],
        multicast: %w[224.0.0.0/4 ff00::/8],
        broadcast: %w[255.255.255.255/32],
        reserved: %w[240.0.0.0/4],
        private: %w[10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10],
        shared: %w[100.64.0.0/10],
        protocol: %w[192.0.0.0/24],
        benchmarking: %w[198.18.0.0/15],
        discard: %w[100::/64],
        embedding: %w[::/96 64:ff9b::/96 64:ff9b:1::/48 2001::/32 2002::/16]
      }.flat_map { |kind, ranges| ranges.map { |range| [IPAddr.new(range), kind].freeze } }.freeze
      # Where the 32 bits of an address of IPv4 begin, from the right, and which of them are inverted.
      EMBEDDED = {
        "::ffff:0:0/96" => [0, 0],
        "::ffff:0:0:0/96" => [0, 0],
        "64:ff9b::/96" => [0, 0],
        "64:ff9b:1::/48" => [0, 0],
        "2002::/16" => [80, 0],
        "2001::/32" => [0, 0xFFFFFFFF]
      }.map { |range, place| [IPAddr.new(range), *place].freeze }.freeze
      # ::a.b.c.d, long deprecated; :: and ::1 are not of these.
      COMPATIBLE = IPAddr.new("::/96")
      LOWEST_COMPATIBLE = 0x10000
      ADDRESS = /\A(?:[0-9.]{7,15}|[0-9A-Fa-f:.]{2,45}(?:%[0-9A-Za-z._-]{1,32})?)\z/
      private_constant :RANGES, :EMBEDDED, :COMPATIBLE, :LOWEST_COMPATIBLE, :ADDRESS

      class << self
        # The address that a text is, and those that are embedded in it; nil where it is none.
        def all_in(text)
          text = text.b
          return unless text.match?(ADDRESS)
          address = IPAddr.new(text.sub(/%.*/m, ""))
          address.ipv4? ? [address] : [address, *embedded(address)]
        rescue IPAddr::Error
          nil
        end

        # The kind of an IPAddr, or nil where it is an ordinary address.
        def kind(address) = RANGES.find { |range, _| range.family == address.family && range.include?(address) }&.last

        private

        def embedded(address)
          return [ipv4(address.to_i)] if COMPATIBLE.include?(address) && address.to_i >= LOWEST_COMPATIBLE
          EMBEDDED.filter_map { |range, shift, mask| ipv4((address.to_i >> shift) ^ mask) if range.include?(address) }
        end

        def ipv4(number) = IPAddr.new(number & 0xFFFFFFFF, Socket::AF_INET)
      end
    end
  end
end
