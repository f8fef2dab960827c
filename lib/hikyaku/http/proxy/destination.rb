# frozen_string_literal: true

require "socket"
require_relative "../../support/special_addresses"
require_relative "destination/allowance"
require_relative "destination/bad_ports"
require_relative "destination/refused"

module Hikyaku
  module HTTP
    class Proxy
      # Which hosts and ports the proxy reaches. It is asked when the name is resolved, about every address, and what it returns is what
      # is connected to: a name that is resolved again may lead elsewhere.
      #
      #     destination = Hikyaku::HTTP::Proxy::Destination.new(allow: ["127.0.0.0/8", "app.test:3000"], own: [["127.0.0.1", 8080]])
      #     destination.check("example.com", 80, ["192.0.2.1", "::1"])   # => ["192.0.2.1"]
      #
      # Refused, unless allowed, are this machine (127.0.0.0/8, ::1, 0.0.0.0/8, ::), the link (169.254.0.0/16, fe80::/10), the services that
      # tell machines in clouds their secrets, multicast, broadcast and reserved addresses; and all of these in other dress: mapped to
      # IPv6, through NAT64, 6to4 or Teredo. So are the ports that browsers refuse (Fetch Standard, section "Port blocking").
      #
      # Private networks (RFC 1918, RFC 4193) are reached: a proxy on one's own machine is for one's own network, too.
      #
      # What is allowed is
      #
      # - a range of addresses, "127.0.0.0/8", or an address, "127.0.0.1", "127.0.0.1:3000", "[::1]:3000": where it is asked for as an
      #   address, or as localhost. Not by another name: whoever owns a name may let it lead to this machine, and a page of theirs is
      #   then, to a browser, of the same origin (DNS rebinding);
      # - a name, "app.test" or "app.test:3000", wherever it leads.
      #
      # With a port it allows that port, too, if it is one that browsers refuse. The proxy's own address is never reached: it would ask
      # itself without end.
      class Destination
        PORTS = (1..65_535)
        LOCALHOST = /(?:\A|\.)localhost\z/
        # Names of such services: they are refused before anybody resolves them, whatever they resolve to.
        METADATA_NAMES = %w[metadata.google.internal metadata.goog].freeze
        MOST_SHOWN = 100
        # They change while the proxy runs.
        MACHINE = -> { Socket.ip_address_list.map(&:ip_address) }
        SpecialAddresses = Support::SpecialAddresses
        # Kinds of addresses, and the proxy itself, with what they are.
        REFUSED = {
          metadata: "a service that tells this machine's secrets",
          loopback: "this machine",
          unspecified: "no machine in particular, and so to this one",
          link_local: "an address of the local link",
          multicast: "a multicast address",
          broadcast: "the broadcast address",
          reserved: "a reserved address",
          own: "the proxy itself",
          malformed: "what is no address"
        }.freeze
        # For these nothing can be allowed.
        FINAL = %i[own unresolved malformed no_port].freeze
        private_constant :PORTS, :LOCALHOST, :METADATA_NAMES, :MOST_SHOWN, :MACHINE, :SpecialAddresses, :REFUSED, :FINAL

        def initialize(allow: [], own: [], machine: MACHINE)
          @allowances = allow.map { |text| Allowance.parse(text) }.freeze
          @own = own.flat_map { |address, port| SpecialAddresses.all_in(address).map { |face| [face, port].freeze } }.freeze
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

        # What can be said before the name is resolved.
        def check_name(host, port)
          host = normal(host)
          check_port(host, port)
          refuse(:metadata, host, port, "is the name of a service that tells this machine's secrets") if METADATA_NAMES.include?(host) && !named?(host, port)
          host
        end

        def inspect = "#<#{self.class} #{@allowances.size} allowed>"

        private

        def normal(host) = host.to_s.b.downcase.delete_prefix("[").delete_suffix("]").delete_suffix(".")

        def check_port(host, port)
          refuse(:no_port, host, port, "cannot be asked at such a port: there are those from 1 to 65535") unless port.is_a?(Integer) && PORTS.cover?(port)
          return unless BadPorts.include?(port)
          return if @allowances.any? { |allowance| allowance.port == port && (allowance.name?(host, port) || allowance.literal?(host)) }
          refuse(:port, host, port, "is not asked at port #{port}, where something else than HTTP is spoken")
        end

        def reason(host, port, address)
          text = address.respond_to?(:ip_address) ? address.ip_address : address.to_s
          faces = SpecialAddresses.all_in(text) or return :malformed
          return :own if faces.any? { |face| own?(face, port) }
          return if named?(host, port)
          as_address = literal?(host) || (LOCALHOST.match?(host) && faces.all? { |face| SpecialAddresses.kind(face) == :loopback })
          faces.each do |face|
            kind = SpecialAddresses.kind(face)
            next unless REFUSED.key?(kind)
            return kind unless as_address && @allowances.any? { |allowance| allowance.address?(face, port) }
          end
          nil
        end

        # To ask at no address in particular is to ask at the loopback. Who listens at none in particular is asked at each that the machine has.
        def own?(face, port)
          @own.any? do |address, own_port|
            next false unless own_port == port
            next local?(face) || machine?(face) if SpecialAddresses.kind(address) == :unspecified
            address == face || (local?(address) && SpecialAddresses.kind(face) == :unspecified)
          end
        end

        def machine?(face) = @machine.call.any? { |address| SpecialAddresses.all_in(address)&.include?(face) }

        def local?(address) = %i[loopback unspecified].include?(SpecialAddresses.kind(address))

        def named?(host, port) = @allowances.any? { |allowance| allowance.name?(host, port) }

        def literal?(host) = !SpecialAddresses.all_in(host).nil?

        def refuse(reason, host, port, text)
          name = host[0, MOST_SHOWN]
          name = "[#{name}]" if literal?(name) && name.include?(":")
          advice = "; if it is meant, allow #{"#{name}:#{port}".inspect}" unless FINAL.include?(reason)
          raise Refused.new(reason, "#{name.inspect} #{text}: the proxy does not go there#{advice}")
        end
      end
    end
  end
end
