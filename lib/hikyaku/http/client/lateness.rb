# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      # When an answer is late: where nothing came for so many round trips, and so many seconds, though something is due.
      module Lateness
        TRIPS = 3
        SECONDS = 1.5
        private_constant :TRIPS, :SECONDS

        module_function

        # @param connection [Connection]
        # @param round_trip [Float, nil] seconds
        # @return [Float, nil] seconds of the monotonic clock; nil where nobody waits for it but who has all the time
        def at(connection, round_trip)
          return if connection.closed? || connection.paused? || connection.pipeline.last?
          others_wait = connection.unanswered.size > 1
          return if !others_wait && (!connection.pipeline.midway? || connection.pipeline.begun?)
          connection.moved_at + [TRIPS * round_trip.to_f, SECONDS].max
        end

        # @param exchange [Exchange] that was asked by itself
        # @return [Boolean] whether its answer took so long that it would have been late, or nearly
        def late?(exchange) = exchange.begun_at - exchange.sent_at > SECONDS / 2
      end
    end
  end
end
