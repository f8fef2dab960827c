# frozen_string_literal: true

require_relative "../engine"
require_relative "../errors"
require_relative "../wire"
require_relative "session"

module Hikyaku
  module Broker
    class RubyEngine
      # The driver's side: connections come and go, bytes are taken and given. See Engine.
      module Carrying
        include Engine

        def connect(now:, address: "")
          @now = now
          raise TooManyConnections, "there are #{@limits.max_sessions} connections, as many as there may be" if @sessions.size >= @limits.max_sessions
          guarded { boot } if @ledger && @next_session >= @reserved_sessions
          @next_session += 1
          session = Session.new(@next_session - 1, address, now, @limits.max_frame)
          @sessions[session.serial] = session
        end

        def receive(session, bytes, now:, wall:)
          at(now, wall)
          return false if session.ended?
          session.heard_at = now
          begin
            guarded { session.reader.read(bytes) { |frame, size| carry_out(session, frame, size) } }
          rescue Wire::Violation => violation
            end_with(session, violation.code, violation.message, id: violation.id)
          end
          !session.ended?
        end

        def disconnect(session, now:, wall:)
          at(now, wall)
          guarded { finish_session(session) } unless session.ended?
          session.state = :gone
          @sessions.delete(session.serial)
        end

        def full?(session)
          session.unanswered >= @limits.window_messages || session.unanswered_bytes >= @limits.window_bytes || session.deaf?
        end

        def over?(session) = session.ended? && session.outbox.empty?

        def next_ready
          while (session = @ready.shift)
            return session unless session.state == :gone || session.outbox.empty? || session.blocked
            session.listed = false
          end
        end

        def take(session, max_bytes)
          bytes = session.outbox.take(max_bytes)
          session.taken = bytes.bytesize
          bytes
        end

        def wrote(session, count)
          session.outbox.wrote(count)
          session.said_at = @now if count > 0
          session.listed = false
          session.blocked = count < session.taken
          session.taken = 0
          speak(session) unless session.outbox.empty?
          relieve(session) if session.crowded && session.relieved?
        end

        def writable(session)
          session.blocked = false
          speak(session) unless session.outbox.empty?
        end

        private

        # It takes deliveries again.
        def relieve(session)
          session.crowded = false
          session.subscriptions.each_value { |subscription| may_receive(subscription) }
          session.subscriptions.each_value.map(&:queue).uniq.each { |queue| guarded { dispatch(queue) } }
        end
      end
    end
  end
end
