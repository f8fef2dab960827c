# frozen_string_literal: true

require_relative "../hello"
require_relative "../permission"
require_relative "../wire"
require_relative "identifying"

module Hikyaku
  module Broker
    class RubyEngine
      # How sessions begin and end (docs/protocol.md, sections 3, 10 and 11).
      module Greeting
        VERSION = 1
        LEAST_FRAME = 4096
        private_constant :VERSION, :LEAST_FRAME

        private

        def greet(session, hello)
          return end_with(session, Wire::Code::DRAINING, "the broker is about to stop", id: hello.id, retry_after: @draining) if @draining
          return end_with(session, Wire::Code::VERSION, "the broker speaks version #{VERSION}", id: hello.id) unless VERSION.between?(hello.lowest, hello.highest)
          trouble = trouble_of(hello)
          return end_with(session, Wire::Code::INVALID, trouble, id: hello.id) if trouble
          session.hello = hello
          session.agent = hello.agent.force_encoding(Encoding::UTF_8).scrub
          return welcome(session, [Permission.all]) if @open
          session.state = :asking
          @asking << Hello.new(serial: session.serial, identity: hello.identity.dup.force_encoding(Encoding::UTF_8), credentials: hello.credentials,
            kind: hello.authentication, agent: session.agent, address: session.address)
        end

        def trouble_of(hello)
          return "a client takes frames of #{LEAST_FRAME} bytes at least" if hello.max_frame < LEAST_FRAME
          return "authentication is of kind 0, 1 or 2, not #{hello.authentication}" if hello.authentication > 2
          "an identity is UTF-8 without control characters" unless hello.identity.empty? || name?(hello.identity, 1)
        end

        def welcome(session, permissions)
          hello = session.hello
          session.hello = nil
          session.permissions = permissions
          return unless known?(session, hello)
          session.state = :open
          session.max_frame = hello.max_frame
          beat(session, hello.heartbeat)
          session.outbox << Wire.welcome(id: hello.id, version: VERSION, levels: @highest_level.zero? ? 1 : 7, level: @level, max_frame: @limits.max_frame,
            heartbeat: (session.heartbeat.to_f * 1000).round, window_messages: @limits.window_messages, window_bytes: @limits.window_bytes,
            session: session.serial, low: session.producer&.low || 0)
          speak(session)
        end

        # Whoever has an identity is the only one who has it.
        def known?(session, hello)
          return true if hello.identity.empty?
          producer = @producers[hello.identity]
          if producer && hello.epoch <= producer.epoch
            end_with(session, Wire::Code::FENCED, "this identity has connected with epoch #{producer.epoch}", id: hello.id, about: producer.epoch)
            return false
          end
          producer ||= new_producer(hello.identity)
          unless producer
            end_with(session, Wire::Code::LIMIT, Identifying::ALL_CONNECTED, id: hello.id, retry_after: retry_after(Wire::Code::LIMIT))
            return false
          end
          fence(hello)
          producer.epoch = hello.epoch
          use_producer(producer)
          session.identity = hello.identity
          session.producer = producer
          @identities[hello.identity] = session
          true
        end

        # Who has it gives it up, and the newer one goes on with what is known of it.
        def fence(hello)
          older = @identities[hello.identity] or return
          older.producer = nil
          end_with(older, Wire::Code::FENCED, "this identity has connected again, with epoch #{hello.epoch}")
        end

        # Between what the broker wants to hear at least and at most; none for those who propose none.
        def beat(session, proposed)
          return if proposed.zero?
          session.heartbeat = proposed.clamp(@limits.heartbeat_least, @limits.heartbeat_most) / 1000.0
          session.pulse_slot = @pulses.add(@now + session.heartbeat / 2, session)
        end

        # Says why, and hears nothing more.
        def end_with(session, code, sentence, id: 0, retry_after: 0, about: 0)
          return if session.ended?
          deny(session, id, code, sentence, scope: 2, retry_after: retry_after, delivery: about)
          finish_session(session)
        end

        # What was out comes back.
        def finish_session(session, vanished: true)
          session.state = :ended
          session.reader.stop
          session.hello = nil
          session.subscriptions.each_value { |subscription| leave(subscription) }
          returned = return_all(session, vanished: vanished)
          @pulses.cancel(session.pulse_slot, session)
          @permits.cancel(session.permit_slot, session)
          let_identity_go(session)
          queues = session.subscriptions.each_value.map(&:queue)
          queues.concat(returned.map { |delivery| delivery.message.queue }) if returned
          session.subscriptions.clear
          queues.uniq.each { |queue| dispatch(queue) }
        end

        def let_identity_go(session)
          producer = session.producer or return
          @identities.delete(session.identity)
          (producer.numbered? && !session.forgets) ? rest_producer(producer) : forget_producer(producer)
        end
      end
    end
  end
end
