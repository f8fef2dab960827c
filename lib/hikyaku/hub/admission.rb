# frozen_string_literal: true

require_relative "../error"
require_relative "client_address"

module Hikyaku
  # More connections than the hub may hold, in total or from one address.
  class TooManyConnections < StandardError
    include Error
  end

  class Hub
    # Limits the number of subscribers, in total and by client address. The addresses of one IPv6 /64 count as one client's.
    #
    # Mercure draft-08, section "Subscription", asks for such limits.
    class Admission
      def initialize(total: nil, per_address: nil)
        @total = total
        @per_address = per_address
        @count = 0
        @refused_total = @refused_address = 0
        @addresses = Hash.new(0)
      end

      attr_reader :refused_total, :refused_address

      def admit(address)
        if @total && @count >= @total
          @refused_total += 1
          raise TooManyConnections, "the hub holds #{@total} connections, its limit"
        end
        client = address && ClientAddress.client(address)
        if client && @per_address && @addresses[client] >= @per_address
          @refused_address += 1
          raise TooManyConnections, "your address holds #{@per_address} connections, its limit"
        end
        @count += 1
        @addresses[client] += 1 if client
      end

      def release(address)
        @count -= 1
        client = address && ClientAddress.client(address)
        @addresses.delete(client) if client && (@addresses[client] -= 1) <= 0
      end
    end
  end
end
