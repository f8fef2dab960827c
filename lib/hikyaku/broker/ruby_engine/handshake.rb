# frozen_string_literal: true

require_relative "../auth_request"
require_relative "../permission"
require_relative "../wire"

module Hikyaku
  module Broker
    class RubyEngine
      # How a session begins: HELLO, the decision on it, and the identity that the client has from then on (docs/protocol.md,
      # sections 3, 10 and 11).
      class Handshake
        VERSION = 1
        MIN_FRAME = 4096
        private_constant :VERSION, :MIN_FRAME

        # `open` lets every client do everything without a decision.
        def initialize(parts, open:)
          @parts = parts
          @open = open
          @undecided = []
        end

        def next_undecided = @undecided.shift

        def hello(session, hello)
          return close(session, hello, Wire::Code::DRAINING, STOPPING, retry_after: @parts.draining) if @parts.draining
          return close(session, hello, Wire::Code::VERSION, "the broker speaks version #{VERSION}") unless VERSION.between?(hello.lowest, hello.highest)
          fault = fault_of(hello)
          return close(session, hello, Wire::Code::INVALID, fault) if fault
          session.hello = hello
          session.agent = hello.agent.force_encoding(Encoding::UTF_8).scrub
          return welcome(session, [Permission.all]) if @open
          session.state = :undecided
          @undecided << AuthRequest.new(serial: session.serial, identity: hello.identity.dup.force_encoding(Encoding::UTF_8), credentials: hello.credentials,
            kind: hello.authentication, agent: session.agent, address: session.address)
        end

        # `until_ms` is the end of the permissions in milliseconds since 1970.
        def permit(session, permissions, until_ms)
          if until_ms && until_ms <= @parts.clock.wall
            close(session, session.hello, Wire::Code::UNAUTHORIZED, Sessions::TOKEN_EXPIRED)
          elsif @parts.draining
            close(session, session.hello, Wire::Code::DRAINING, STOPPING, retry_after: @parts.draining)
          else
            welcome(session, permissions)
            @parts.sessions.expire_at(session, until_ms) if until_ms && session.open?
          end
        end

        def refuse(session, sentence) = close(session, session.hello, Wire::Code::UNAUTHORIZED, sentence)

        def clear = @undecided.clear

        STOPPING = "the broker is about to stop"
        private_constant :STOPPING

        private

        def close(session, hello, code, sentence, **fields) = @parts.sessions.close(session, code, sentence, id: hello.id, **fields)

        def fault_of(hello)
          return "a client takes frames of #{MIN_FRAME} bytes at least" if hello.max_frame < MIN_FRAME
          return "authentication is of kind 0, 1 or 2, not #{hello.authentication}" if hello.authentication > 2
          "an identity is UTF-8 without control characters" unless hello.identity.empty? || Queue.name?(hello.identity, 1)
        end

        def welcome(session, permissions)
          hello = session.hello
          session.hello = nil
          session.permissions = permissions
          return unless identify(session, hello)
          session.state = :open
          session.max_frame = hello.max_frame
          @parts.sessions.start_heartbeat(session, hello.heartbeat)
          limits = @parts.limits
          @parts.output.send_frame(session, Wire.welcome(id: hello.id, version: VERSION, levels: @parts.levels.highest.zero? ? 1 : 7, level: @parts.levels.default,
            max_frame: limits.max_frame, heartbeat: (session.heartbeat.to_f * 1000).round, window_messages: limits.window_messages, window_bytes: limits.window_bytes,
            session: session.serial, low: session.producer&.low || 0))
        end

        # An identity belongs to one session at a time: a connection with a newer epoch fences the older one.
        def identify(session, hello)
          return true if hello.identity.empty?
          producers = @parts.producers
          producer = producers[hello.identity]
          if producer && hello.epoch <= producer.epoch
            close(session, hello, Wire::Code::FENCED, "this identity has connected with epoch #{producer.epoch}", about: producer.epoch)
            return false
          end
          producer ||= producers.create(hello.identity)
          unless producer
            close(session, hello, Wire::Code::LIMIT, Producers::ALL_CONNECTED, retry_after: @parts.intake.retry_after(Wire::Code::LIMIT))
            return false
          end
          fence(hello)
          producer.epoch = hello.epoch
          session.identity = hello.identity
          producers.connect(producer, session)
          true
        end

        def fence(hello)
          older = @parts.producers.session_of(hello.identity) or return
          older.producer = nil
          @parts.sessions.close(older, Wire::Code::FENCED, "this identity has connected again, with epoch #{hello.epoch}")
        end
      end
    end
  end
end
