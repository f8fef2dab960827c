# frozen_string_literal: true

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
    end
  end
end
