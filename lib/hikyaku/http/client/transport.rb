# frozen_string_literal: true

require "socket"

module Hikyaku
  module HTTP
    class Client
      # What the kernel knows of a connection, where it tells: Linux alone does.
      #
      # @!attribute [r] timeout
      #   @return [Float] seconds after which it repeats a packet (RFC 6298)
      # @!attribute [r] unacknowledged
      #   @return [Boolean] whether something that was written has not arrived, as far as it knows
      # @!attribute [r] acknowledged_before
      #   @return [Float] seconds since something was acknowledged
      # @!attribute [r] round_trip
      #   @return [Float] seconds, smoothed: an eighth is that of the newest packet (RFC 6298, section 2.3)
      Transport = Struct.new(:timeout, :unacknowledged, :acknowledged_before, :round_trip)

      class Transport
        SMOOTHING = 8
        INFO = Socket.const_defined?(:TCP_INFO) ? Socket::TCP_INFO : nil
        # Where Linux's struct tcp_info has them, in words of 32 bits: microseconds, packets, milliseconds, microseconds.
        TIMEOUT, UNACKNOWLEDGED, ACKNOWLEDGED, ROUND_TRIP = 2, 6, 14, 17
        private_constant :SMOOTHING, :INFO, :TIMEOUT, :UNACKNOWLEDGED, :ACKNOWLEDGED, :ROUND_TRIP

        def self.of(io)
          words = INFO && io.to_io.getsockopt(Socket::IPPROTO_TCP, INFO).unpack("L*")
          return if words.nil? || words.size <= ROUND_TRIP
          new(words[TIMEOUT] / 1e6, words[UNACKNOWLEDGED].positive?, words[ACKNOWLEDGED] / 1e3, words[ROUND_TRIP] / 1e6)
        rescue SystemCallError, IOError
          nil # its end is told elsewhere
        end

        def longer_than(before) = SMOOTHING * (round_trip - before.round_trip)
      end
    end
  end
end
