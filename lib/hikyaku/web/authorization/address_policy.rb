# frozen_string_literal: true

require "socket"
require_relative "../../support/special_addresses"

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

        SYSTEM = ->(host) { Addrinfo.getaddrinfo(host, nil, nil, :STREAM).map(&:ip_address) }

        class << self
          def loopback?(host) = host.casecmp?("localhost") || kinds(host) == [:loopback]

          def addresses(host, resolver: SYSTEM)
            return [host] if kinds(host)
            found = resolver.call(host).uniq
            raise Refused, "its host has no address" if found.empty?
            allowed = host.casecmp?("localhost") ? [:loopback] : []
            return found if found.all? { |address| kinds(address) == allowed }
            raise Refused, "its host leads to a private address; configure the address itself, or a file"
          rescue SocketError
            raise Refused, "its host has no address"
          end

          private

          # The kinds of an address and of those embedded in it, without ordinary ones; nil where it is no address.
          def kinds(text) = Support::SpecialAddresses.all_in(text)&.filter_map { |address| Support::SpecialAddresses.kind(address) }&.uniq
        end

        private_constant :SYSTEM
      end
    end
  end
end
