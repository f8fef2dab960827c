# frozen_string_literal: true

module Hikyaku
  module Broker
    class Client
      # When something is due on a connection: leases are renewed at a third of them, so that a touch may be late twice, and a
      # sign of life is given at half of the heartbeat.
      #
      # @api private
      class Rhythm
        # @param seconds [Float] that the lease of a delivery lasts
        # @param now [Float] seconds on the monotonic clock
        # @return [Boolean] something is due earlier than before
        def lease(seconds, now)
          third = seconds / 3
          @every = third if @every.nil? || third < @every
          due = now + @every
          return false if @touch_at && @touch_at <= due
          @touch_at = due
          true
        end

        # @param now [Float]
        # @return [Boolean] leases are to be renewed
        def touch?(now) = !@touch_at.nil? && now >= @touch_at

        # @param now [Float]
        # @param again [Boolean] something is out still
        # @return [void]
        def touched(now, again:)
          @touch_at = (now + @every if again)
        end

        # @param session [Session]
        # @param now [Float]
        # @return [Boolean] nothing was written for too long
        def sign_of_life?(session, now) = !!sign_of_life_at(session)&.<=(now)

        # @param session [Session]
        # @return [Float, nil] when there is something to be done
        def due(session) = [@touch_at, sign_of_life_at(session)].compact.min

        private

        def sign_of_life_at(session) = (session.wrote_at + session.heartbeat / 2 if session.heartbeat.positive?)
      end
    end
  end
end
