# frozen_string_literal: true

require "ipaddr"
require "socket"
require_relative "../../support/special_addresses"
require_relative "errors"

module Hikyaku
  module HTTP
    class Proxy
      # Decides which hosts and ports the proxy connects to. The client asks it after each resolution, about every address, and connects to the addresses that it
      # returns: a second resolution could return others.
      #
      #     destination = Hikyaku::HTTP::Proxy::Destination.new(allow: ["127.0.0.0/8", "app.test:3000"], own: [["127.0.0.1", 8080]])
      #     destination.check("example.com", 80, ["192.0.2.1", "::1"])   # => ["192.0.2.1"]
      #
      # Unless they are allowed, it refuses
      #
      # - loopback and unspecified addresses, link-local, multicast, broadcast and reserved ones, and the metadata services of clouds;
      # - the same addresses mapped to IPv6, or embedded in NAT64, 6to4 and Teredo addresses;
      # - the ports that browsers refuse (Fetch Standard, section "Port blocking").
      #
      # It allows private networks (RFC 1918, RFC 4193), because the proxy serves the machine's own user. It never allows the proxy's own address.
      #
      # An allowance is
      #
      # - a range of addresses, "127.0.0.0/8", or an address, "127.0.0.1", "127.0.0.1:3000", "[::1]:3000". It holds for URLs with an address or localhost as their
      #   host, and for no other name: otherwise the owner of a name could let it resolve to this machine (DNS rebinding);
      # - a name, "app.test" or "app.test:3000", whatever it resolves to.
      #
      # An allowance with a port also allows a port that browsers refuse.
      class Destination
        PORTS = (1..65_535)
        BAD_PORTS = [0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123,
          135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719,
          1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10_080].to_h { |port| [port, true] }.freeze
        LOCALHOST = /(?:\A|\.)localhost\z/
        METADATA_NAMES = %w[metadata.google.internal metadata.goog].freeze
        MAX_SHOWN = 100
        # The machine's addresses change while the proxy runs.
        MACHINE = -> { Socket.ip_address_list.map(&:ip_address) }
        SpecialAddresses = Support::SpecialAddresses
        REFUSED = {
          metadata: "a service that tells this machine's secrets", loopback: "this machine", unspecified: "the unspecified address, which is this machine",
          link_local: "an address of the local link", multicast: "a multicast address", broadcast: "the broadcast address", reserved: "a reserved address",
          own: "the proxy itself", malformed: "a malformed address"
        }.freeze
        # An allowance does not help against these.
        FINAL = %i[own unresolved malformed no_port].freeze

        # A range of addresses, or a name, at one port or at all.
        class Allowance
          RANGE = %r{\A[0-9A-Fa-f:.]+/[0-9]{1,3}\z}
          BRACKETS = /\A\[([^\[\]]+)\](?::([0-9]{1,5}))?\z/
          HOST = /\A([^:\/\s\[\]@]+)(?::([0-9]{1,5}))?\z/
          private_constant :RANGE, :BRACKETS, :HOST

          def self.parse(text)
            return new(range: IPAddr.new(text)) if text.match?(RANGE) || SpecialAddresses.all_in(text)
            host, port = (BRACKETS.match(text) || HOST.match(text) || raise(IPAddr::InvalidAddressError)).captures
            return new(range: IPAddr.new(host), port: port&.to_i) if text.start_with?("[") || SpecialAddresses.all_in(host)
            new(name: host.downcase.delete_suffix("."), port: port&.to_i)
          rescue IPAddr::Error
            raise ConfigError, "#{text[0, MAX_SHOWN].inspect} cannot be allowed to the proxy: expected a range (127.0.0.0/8), an address (127.0.0.1:3000) or a name (app.test:3000)"
          end

          attr_reader :port

          def initialize(range: nil, name: nil, port: nil)
            @range = range
            @name = name
            @port = port
            freeze
          end

          def name?(name, port) = @name == name && port?(port)

          def address?(address, port) = !@range.nil? && @range.family == address.family && @range.include?(address) && port?(port)

          # Whether the host is an address, and allowed.
          def literal?(host)
            forms = SpecialAddresses.all_in(host)
            !forms.nil? && address?(forms.first, @port)
          end

          private

          def port?(port) = @port.nil? || @port == port
        end
        private_constant :PORTS, :BAD_PORTS, :LOCALHOST, :METADATA_NAMES, :MAX_SHOWN, :MACHINE, :SpecialAddresses, :REFUSED, :FINAL, :Allowance

        def initialize(allow: [], own: [], machine: MACHINE)
          @allowances = allow.map { |text| Allowance.parse(text) }.freeze
          @own = own.flat_map { |address, port| SpecialAddresses.all_in(address).map { |form| [form, port].freeze } }.freeze
          @machine = machine
          freeze
        end

        def check(host, port, addresses)
          host = check_name(host, port)
          reasons = addresses.map { |address| reason(host, port, address) }
          usable = addresses.zip(reasons).filter_map { |address, reason| address unless reason }
          return usable if usable.any?
          refuse(:unresolved, host, port, "has no address") if addresses.empty?
          refuse(reasons.first, host, port, "leads to #{REFUSED.fetch(reasons.first)}")
        end

        # The part of the check that needs no resolution.
        def check_name(host, port)
          host = host.to_s.b.downcase.delete_prefix("[").delete_suffix("]").delete_suffix(".")
          check_port(host, port)
          refuse(:metadata, host, port, "is the name of a service that tells this machine's secrets") if METADATA_NAMES.include?(host) && !named?(host, port)
          host
        end

        def inspect = "#<#{self.class} #{@allowances.size} allowed>"

        private

        def check_port(host, port)
          refuse(:no_port, host, port, "cannot have such a port: ports are 1 to 65535") unless port.is_a?(Integer) && PORTS.cover?(port)
          return unless BAD_PORTS.key?(port)
          return if @allowances.any? { |allowance| allowance.port == port && (allowance.name?(host, port) || allowance.literal?(host)) }
          refuse(:port, host, port, "is blocked at port #{port}, which belongs to a protocol other than HTTP")
        end

        def reason(host, port, address)
          text = address.respond_to?(:ip_address) ? address.ip_address : address.to_s
          forms = SpecialAddresses.all_in(text) or return :malformed
          return :own if forms.any? { |form| own?(form, port) }
          return if named?(host, port)
          as_address = literal?(host) || (LOCALHOST.match?(host) && forms.all? { |form| SpecialAddresses.kind(form) == :loopback })
          forms.each do |form|
            kind = SpecialAddresses.kind(form)
            next unless REFUSED.key?(kind)
            return kind unless as_address && @allowances.any? { |allowance| allowance.address?(form, port) }
          end
          nil
        end

        # A connection to the unspecified address reaches the loopback. A listener at the unspecified address is reached at every address of the machine.
        def own?(form, port)
          @own.any? do |address, own_port|
            next false unless own_port == port
            next local?(form) || machine?(form) if SpecialAddresses.kind(address) == :unspecified
            address == form || (local?(address) && SpecialAddresses.kind(form) == :unspecified)
          end
        end

        def machine?(form) = @machine.call.any? { |address| SpecialAddresses.all_in(address)&.include?(form) }

        def local?(address) = %i[loopback unspecified].include?(SpecialAddresses.kind(address))

        def named?(host, port) = @allowances.any? { |allowance| allowance.name?(host, port) }

        def literal?(host) = !SpecialAddresses.all_in(host).nil?

        def refuse(reason, host, port, text)
          name = host[0, MAX_SHOWN]
          name = "[#{name}]" if literal?(name) && name.include?(":")
          advice = "; if you trust it, allow #{"#{name}:#{port}".inspect}" unless FINAL.include?(reason)
          raise StatusError.new(403, "the proxy does not connect to #{name.inspect}: it #{text}#{advice}", reason: reason)
        end
      end
    end
  end
end
