# frozen_string_literal: true

module Hikyaku
  module Broker
    class Client
      # When something is due on a connection: leases are renewed at a third of them, so that a touch may be late twice, and a
      # sign of life is given at half of the heartbeat.
      class Rhythm
        def lease(seconds, now)
          third = seconds / 3
          @every = third if @every.nil? || third < @every
          due = now + @every
          return false if @touch_at && @touch_at <= due
          @touch_at = due
          true
        end

        def touch?(now) = !@touch_at.nil? && now >= @touch_at

        def touched(now, again:)
          @touch_at = (now + @every if again)
        end

        def sign_of_life?(session, now) = !!sign_of_life_at(session)&.<=(now)

        def due(session) = [@touch_at, sign_of_life_at(session)].compact.min

        private

        def sign_of_life_at(session) = (session.wrote_at + session.heartbeat / 2 if session.heartbeat.positive?)
      end
    end
  end
end
