# frozen_string_literal: true

require_relative "../wire"

module Hikyaku
  module Broker
    class RubyEngine
      # Which sessions have something to be sent, and the refusals among it.
      class Output
        # How often each error code was sent, by code.
        attr_reader :refused

        def initialize
          @ready = []
          @refused = Array.new(24, 0)
        end

        def <<(session)
          return if session.listed || session.blocked
          session.listed = true
          @ready << session
        end

        def send_frame(session, bytes)
          session.buffer << bytes
          self << session
        end

        # Returns nil, so that a caller can refuse and return in one expression.
        def refuse(session, id, code, sentence, retry_after: 0, delivery: 0, scope: 0)
          @refused[code] += 1
          send_frame(session, Wire.error(id: id, code: code, sentence: sentence, retry_after: retry_after, delivery: delivery, scope: scope))
          nil
        end

        def invalid(session, id, sentence) = refuse(session, id, Wire::Code::INVALID, sentence)

        def next_ready
          while (session = @ready.shift)
            return session unless session.state == :gone || session.buffer.empty? || session.blocked
            session.listed = false
          end
        end

        def take(session, max_bytes)
          bytes = session.buffer.take(max_bytes)
          session.taken = bytes.bytesize
          bytes
        end

        def wrote(session, count, now)
          session.buffer.wrote(count)
          session.sent_at = now if count > 0
          session.listed = false
          session.blocked = count < session.taken
          session.taken = 0
          self << session unless session.buffer.empty?
        end

        def writable(session)
          session.blocked = false
          self << session unless session.buffer.empty?
        end

        def clear = @ready.clear
      end
    end
  end
end
