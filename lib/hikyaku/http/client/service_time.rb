# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      # How long a server works on an answer. One that takes long is asked on several connections: it works on one request of each.
      class ServiceTime
        SLOW = 0.01 # seconds
        WEIGHT = 0.2 # of the newest in the mean
        private_constant :SLOW, :WEIGHT

        def initialize = @seconds = nil

        # An answer came to what was asked while nothing else was under way.
        def answered(exchange, round_trip)
          return unless exchange.begun_at && exchange.sent_at
          worked = [exchange.begun_at - exchange.sent_at - round_trip.to_f, 0].max
          @seconds = @seconds ? @seconds + (worked - @seconds) * WEIGHT : worked
        end

        def slow?(round_trip) = !@seconds.nil? && @seconds > [SLOW, round_trip.to_f].max
      end
    end
  end
end
