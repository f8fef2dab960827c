# frozen_string_literal: true

require "socket"

module Hikyaku
  module HTTP
    class Client
      # When an answer is late: where nothing came for so many round trips, and so many seconds, though something is due.
      module StallDetector
        TRIPS = 3
        SECONDS = 1.5
        # What takes the line for longer holds up the others: they go elsewhere.
        LARGE_BYTES = 256_000
        LARGE_SECONDS = 2.0
        private_constant :TRIPS, :SECONDS, :LARGE_SECONDS

        module_function

        def seconds(round_trip) = [TRIPS * round_trip.to_f, SECONDS].max

        def at(connection, round_trip)
          return if connection.closed? || connection.pipeline.last?
          others_wait = connection.unanswered.size > 1
          return (connection.paused_at + SECONDS if others_wait) if connection.paused?
          return if !others_wait && (!connection.pipeline.midway? || connection.pipeline.begun?)
          connection.silent_since + seconds(round_trip)
        end

        def endless?(connection, rate, now)
          response = connection.pipeline.response
          return false if response.nil? || response.content_length
          bytes = connection.pipeline.came_of_response
          large?(bytes, rate) || now - connection.unanswered.first.begun_at > LARGE_SECONDS
        end

        def large?(length, rate) = length > LARGE_BYTES || (!rate.nil? && length > rate * LARGE_SECONDS)

        def late?(exchange) = exchange.begun_at - exchange.sent_at > SECONDS / 2
      end

      # Since when it is the other side of a connection that says nothing, and not the line.
      #
      # What is to come on others may stand before it in the queue of a slow line: until that has come, or nothing comes on any connection, the line is
      # at work. And what was asked may not have arrived: the kernel knows until when it was not acknowledged (RFC 9293, section 3.8).
      class IdleTimer
        # A packet, and its first repetition (RFC 6298, section 5.5: after twice the time), may be lost: in timeouts of the kernel.
        REPETITIONS = 3
        # Where something is not acknowledged, it is looked at again after so many seconds.
        AGAIN = 0.25
        private_constant :REPETITIONS, :AGAIN

        def initialize(line)
          @line = line
          @excused_until = -Float::INFINITY
          broken
        end

        # Something came, or was asked on a connection that was idle.
        def broken = @before = @passed_at = nil

        # To be called in each turn while something is due.
        def look(own, now)
          @before ||= @line.brought + [@line.due - own, 0].max
          @passed_at ||= now if @line.brought >= @before || @line.due <= own
        end

        def since(moved_at) = [moved_at, @passed_at || @line.moved_at, @excused_until].max

        # By what the kernel knows of it, where it tells: see {Transport}.
        def excused?(io, since, seconds, now)
          transport = Transport.of(io) or return false
          late_at = transport.unacknowledged ? now + AGAIN : [since, now - transport.acknowledged_before].max + [seconds, REPETITIONS * transport.timeout].max
          return false if now >= late_at
          @excused_until = late_at - seconds
          true
        end
      end

      # What all connections of a client share: the line before them, on which what comes for one waits behind what comes for the others. Bytes count,
      # and not seconds: how fast the line is, and for how long, nobody knows.
      class AccessLink
        attr_reader :brought
        attr_reader :due
        attr_reader :moved_at

        def initialize
          @brought = 0
          @due = 0.0
          @moved_at = -Float::INFINITY
        end

        def received(bytes, now)
          @brought += bytes
          @moved_at = now
        end

        def expect(bytes) = @due += bytes
      end

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
