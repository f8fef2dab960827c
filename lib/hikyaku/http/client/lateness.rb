# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      # When an answer is late: where nothing came for so many round trips, and so many seconds, though something is due.
      module Lateness
        TRIPS = 3
        SECONDS = 1.5
        # What takes the line for longer holds up the others: they go elsewhere.
        LARGE_BYTES = 256_000
        LARGE_SECONDS = 2.0
        private_constant :TRIPS, :SECONDS, :LARGE_SECONDS

        module_function

        # @param round_trip [Float, nil] seconds
        # @return [Float] seconds of silence after which it is late
        def seconds(round_trip) = [TRIPS * round_trip.to_f, SECONDS].max

        # @param connection [Connection]
        # @param round_trip [Float, nil] seconds
        # @return [Float, nil] seconds of the monotonic clock; nil where nobody waits for it but who has all the time
        def at(connection, round_trip)
          return if connection.closed? || connection.pipeline.last?
          others_wait = connection.unanswered.size > 1
          return (connection.paused_at + SECONDS if others_wait) if connection.paused?
          return if !others_wait && (!connection.pipeline.midway? || connection.pipeline.begun?)
          connection.silent_since + seconds(round_trip)
        end

        # @param connection [Connection]
        # @param rate [Float, nil] bytes a second that the line carries
        # @param now [Float]
        # @return [Boolean] whether nothing is to wait behind the answer that is coming, whose length nobody knows: it is long already, or takes long
        def endless?(connection, rate, now)
          response = connection.pipeline.response
          return false if response.nil? || response.content_length
          bytes = connection.pipeline.came_of_response
          large?(bytes, rate) || now - connection.unanswered.first.begun_at > LARGE_SECONDS
        end

        # @param length [Integer] bytes
        # @param rate [Float, nil] bytes a second
        # @return [Boolean] whether an answer of that length takes the line for so long that it would hold up the others
        def large?(length, rate) = length > LARGE_BYTES || (!rate.nil? && length > rate * LARGE_SECONDS)

        # @param exchange [Exchange] that was asked by itself
        # @return [Boolean] whether its answer took so long that it would have been late, or nearly
        def late?(exchange) = exchange.begun_at - exchange.sent_at > SECONDS / 2
      end
    end
  end
end
