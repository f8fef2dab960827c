# frozen_string_literal: true

require_relative "../errors"
require_relative "../wire"
require_relative "session"
require_relative "timer_wheel"

module Hikyaku
  module Broker
    class RubyEngine
      # The connections of clients: their numbers, their heartbeats, and how they end.
      class Sessions
        TOKEN_EXPIRED = "the token has expired"

        # Number of the next session, and the number from which on none is reserved in the journal.
        attr_accessor :next_number, :reserved

        def initialize(parts)
          @parts = parts
          @clock = parts.clock
          @sessions = {}
          @heartbeats = TimerWheel.new
          @expiries = TimerWheel.new
          @next_number = 1
          @reserved = 0
        end

        def connect(address)
          limits = @parts.limits
          raise TooManyConnections, "there are #{limits.max_sessions} connections, as many as there may be" if @sessions.size >= limits.max_sessions
          @parts.recovery.reserve_numbers if @parts.store && @next_number >= @reserved
          @next_number += 1
          session = Session.new(@next_number - 1, address, @clock.now, limits.max_frame)
          @sessions[session.serial] = session
        end

        def [](serial) = @sessions[serial]

        def each(&block) = @sessions.each_value(&block)
        include Enumerable

        def size = @sessions.size

        def disconnect(session)
          finish(session) unless session.ended?
          session.state = :gone
          @sessions.delete(session.serial)
        end

        # Tells a client why its session ends, and reads nothing more from it.
        def close(session, code, sentence, id: 0, retry_after: 0, about: 0)
          return if session.ended?
          @parts.output.refuse(session, id, code, sentence, scope: 2, retry_after: retry_after, delivery: about)
          finish(session)
        end

        # Ends a session: what was out comes back. `vanished` is a connection that broke.
        def finish(session, vanished: true)
          session.state = :ended
          session.reader.stop
          session.hello = nil
          session.subscriptions.each_value { |subscription| @parts.subscriptions.remove(subscription) }
          returned = @parts.settlement.return_all(session, vanished: vanished)
          @heartbeats.cancel(session.heartbeat_timer, session)
          @expiries.cancel(session.expiry_timer, session)
          @parts.producers.disconnect(session)
          queues = session.subscriptions.each_value.map(&:queue)
          queues.concat(returned.map { |delivery| delivery.message.queue }) if returned
          session.subscriptions.clear
          queues.uniq.each { |queue| @parts.deliveries.dispatch(queue) }
        end

        # Ends the session's permissions at a time, in milliseconds since 1970.
        def expire_at(session, wall) = session.expiry_timer = @expiries.add(@clock.now + (wall - @clock.wall) / 1000.0, session)

        # `proposed` is in milliseconds; 0: the client wants no heartbeats.
        def start_heartbeat(session, proposed)
          return if proposed.zero?
          session.heartbeat = proposed.clamp(@parts.limits.heartbeat_least, @parts.limits.heartbeat_most) / 1000.0
          session.heartbeat_timer = @heartbeats.add(@clock.now + session.heartbeat / 2, session)
        end

        def run_timers(most)
          @heartbeats.expire(@clock.now, most: most) { |session| check_heartbeat(session) }
          @expiries.expire(@clock.now) { |session| close(session, Wire::Code::UNAUTHORIZED, TOKEN_EXPIRED) }
        end

        def next_timer = [@heartbeats.next_at, @expiries.next_at].compact.min

        def clear = @sessions.clear

        private

        def check_heartbeat(session)
          session.heartbeat_timer = nil
          return close(session, Wire::Code::IDLE, "nothing was heard for two heartbeats") if @clock.now - session.heard_at >= session.heartbeat * 2
          @parts.output.send_frame(session, Wire.ping) if @clock.now - session.sent_at >= session.heartbeat / 2 && session.buffer.empty?
          session.heartbeat_timer = @heartbeats.add(@clock.now + session.heartbeat / 2, session)
        end
      end
    end
  end
end
