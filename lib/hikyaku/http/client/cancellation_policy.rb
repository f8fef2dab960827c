# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      # What becomes of answers that nobody wants any more, and that a server is about to give: it cannot be told, but by closing the connection.
      #
      # What is asked next waits until they have come: their bytes over the rate of the line, on whichever connection they come, as these share the line. On
      # a connection that has to be opened for it, it waits for two round trips: one for the connection, one for the answer. What is on its way in the
      # meantime comes in any case. So where the bytes take longer, connections are closed, those with the most first, until they do not.
      class CancellationPolicy
        ROUND_TRIPS = 2
        # A server has work with each new connection. Nobody notices less than this, seconds.
        UNNOTICED = 0.1
        private_constant :ROUND_TRIPS, :UNNOTICED

        def initialize(connections, exchanges, link)
          @connections = connections
          @unwanted = exchanges.to_h { |exchange| [exchange, true] }.compare_by_identity
          @link = link
        end

        def unwanted?(exchange) = @unwanted.key?(exchange) || exchange.canceled?

        def dear
          return [] unless @link.rate && @link.round_trip
          bytes = @connections.to_h { |connection| [connection, bytes_on(connection)] }
          left = bytes.values.sum
          bytes.sort_by { |_, count| -count }.take_while { |_, count| (count.positive? && left / @link.rate > cost).tap { left -= count } }.map(&:first)
        end

        # Those that may never answer, and of whom nobody wants it.
        def silent(now, seconds)
          @connections.select do |connection|
            unanswered = connection.unanswered
            unanswered.any? && unanswered.all? { |exchange| unwanted?(exchange) } && !connection.pipeline.begun? && connection.rest(now) >= seconds
          end
        end

        # Nothing more is asked there. An answer that is wanted, and has begun, still comes; then it is closed.
        def leave(connection)
          return connection.give_up_tail if connection.pipeline.begun? && !unwanted?(connection.unanswered.first)
          connection.close
          connection.pipeline.give_up
        end

        private

        def cost = [ROUND_TRIPS * @link.round_trip, UNNOTICED].max

        def bytes_on(connection)
          return 0 if connection.paused?
          connection.pipeline.bytes_of(connection.unanswered.select { |exchange| unwanted?(exchange) }, @link.answer_bytes)
        end
      end
    end
  end
end
