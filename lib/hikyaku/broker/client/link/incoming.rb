# frozen_string_literal: true

require_relative "../delivery"
require_relative "../errors"
require_relative "../rhythm"
require_relative "../../wire"

module Hikyaku
  module Broker
    class Client
      class Link
        # What a link does with the frames that come: all of a reading under one lock.
        module Incoming
          private

          def take(session, frames)
            end_of_it = nil
            news = []
            @lock.synchronize do
              time = now
              frames.each { |frame| end_of_it ||= dispatch(session, frame, time, news) }
              @space.broadcast if @waiting.positive?
              @changed.broadcast if @outbox.empty?
              done_with_draining
            end
            news.each { |error| @on_error&.call(error) }
            raise end_of_it if end_of_it
          end

          def dispatch(session, frame, time, news)
            case frame
            when Wire::Frames::Push then arrived(session, frame, time)
            when Wire::Frames::Ack then acknowledged(frame)
            when Wire::Frames::Error then return refused(frame, news)
            when Wire::Frames::Report then answered(frame.id, frame.document)
            when Wire::Frames::Ping
              session.gather(Wire.receipt(id: frame.id))
              wake
            when Wire::Frames::Receipt then answered(frame.id, true)
            when Wire::Frames::Welcome then welcomed(session, frame)
            when Wire::Frames::Draining then drained(frame)
            end
            nil
          end

          def welcomed(session, welcome)
            raise NotUnderstood.new("the broker says welcome twice", retryable: true) if @session
            @welcome = welcome
            @rhythm = Rhythm.new
            session.heartbeat = welcome.heartbeat / 1000.0
            @session = session
            @trying = nil
            @backoff.reset
            @trouble = nil
            session.gather(Wire.drain) if @quiescent
            @receivers.each_value { |receiver| ask_for(receiver) }
            @resend.begin(@outbox.connected(welcome))
            resend
            @changed.broadcast
          end

          def arrived(session, push, time)
            receiver = @receivers[push.subscription]
            if receiver.nil?
              session.gather(Wire.nack(delivery: push.id))
              return wake
            end
            delivery = Delivery.new(push, receiver.queue, self, session, time)
            @deliveries.add(delivery)
            if @draining || receiver.paused?
              hand_back(delivery)
              wake
            else
              receiver.arrived(delivery)
            end
            wake if @rhythm.lease(push.lease / 1000.0, time)
          end

          def acknowledged(ack)
            case ack.request
            when Wire::Type::SEND, Wire::Type::SEND_BATCH then decided { @outbox.acknowledge(ack) }
            when Wire::Type::SUBSCRIBE then @subscribing.delete(ack.id)&.opened
            else answered(ack.id, ack)
            end
          end

          # The broker has said what became of messages; some may have to be sent once more.
          def decided
            before = @outbox.size
            again = yield
            @resend.answered([before - @outbox.size, 1].max)
            again.each { |pending| transmit(pending) }
            resend if @resend.waiting? || again.any?
          end

          def refused(frame, news)
            error = Refused.of(frame.code, frame.sentence, retryable: frame.later?, retry_after: (frame.retry_after / 1000.0 if frame.retry_after.positive?))
            news << forgotten(frame) if error.is_a?(Stale) && !stale(frame.delivery) && frame.id.zero?
            @fenced_by = frame.delivery if error.is_a?(Fenced)
            if (pending = @asked.delete(frame.id))
              pending.fail(error)
            elsif (receiver = @subscribing.delete(frame.id) || (@receivers[frame.subscription] if frame.scope == 1))
              @receivers.delete(receiver.number)
              receiver.refused(error)
              # Its threads end, and perhaps nobody joins them.
              news << error if frame.scope == 1
            elsif frame.scope != 2
              # Of what the end of a connection came upon, nobody knows whether it was taken.
              decided { @outbox.refuse(frame.id, error) }
            end
            error if frame.scope == 2
          end

          def stale(id)
            delivery = @deliveries.remove(id) and delivery.state = :stale
          end

          # It was settled here, and nobody waited for the answer.
          def forgotten(frame)
            Stale.new("the broker refused what this client said of delivery #{frame.delivery}: #{frame.sentence.to_s.scrub("?")}; its message is delivered again", code: frame.code)
          end

          def drained(frame)
            @draining = true
            @at_least = frame.retry_after / 1000.0
            @receivers.each_value { |receiver| receiver.emptied.each { |delivery| hand_back(delivery) } }
            wake
          end
        end
      end
    end
  end
end
