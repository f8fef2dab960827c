# frozen_string_literal: true

require_relative "../errors"
require_relative "../session"
require_relative "../../wire"

module Hikyaku
  module Broker
    class Client
      class Link
        # The reader's thread: connects, reads until the connection breaks, and connects again, unless the broker has said that
        # it will not get better.
        module Connecting
          private

          def run
            until @failure
              error = live
              final?(error) ? finish(error) : again(error)
            end
          end

          # One connection, from its beginning to its end.
          def live
            @was_welcome = false
            session = Session.connect(@address, lock: @lock, max_frame: @max_frame)
            greeted = false
            greet(session)
            session.each_frames do |frames|
              greeted ||= frames.first.is_a?(Wire::Frames::Welcome)
              take(session, frames)
            end
          rescue Session::Broken => error
            Unreachable.new(greeted ? "the connection to the broker at #{@address} broke: #{error.message}" : absent(error))
          rescue Wire::Violation => error
            NotUnderstood.new("what answers at #{@address} does not speak the broker's protocol: #{error.message}", retryable: true)
          rescue Failure => error
            error
          ensure
            lost(session) if session
          end

          def absent(error) = "no broker answers at #{@address}: #{error.message}; start one (hikyaku broker), or say where it is (HIKYAKU_BROKER_ADDRESS)"

          def greet(session)
            hello = @hello.frame(@max_frame)
            @lock.synchronize do
              session.gather(hello)
              @trying = session
            end
            session.flush
          end

          # An expired token may be followed by another, and who was never connected may have begun later than its clock says; everything
          # else that does not get better by itself is the end.
          def final?(error)
            return false unless error.is_a?(Refused) && !error.retryable? && !error.is_a?(StorageFailed)
            return false if error.is_a?(Fenced) && @welcome.nil? && @hello.pass(@fenced_by)
            !(error.is_a?(Unauthorized) && @hello.renewable? && @was_welcome)
          end

          def again(error)
            told = @lock.synchronize do
              next if @failure
              @trouble = error
              @changed.broadcast
              @on_error
            end
            told&.call(error)
            pause(error)
          end

          def pause(error)
            deadline = now + @backoff.next_pause(at_least: [@at_least, (error.retry_after if error.respond_to?(:retry_after)) || 0].max)
            @lock.synchronize do
              @at_least = 0
              @changed.wait(@lock, deadline - now) until @failure || now >= deadline
            end
          end

          def lost(session)
            @lock.synchronize do
              @was_welcome = @session.equal?(session)
              @session = @trying = nil
              @draining = false
              @deliveries.clear.each { |delivery| delivery.state = :stale }
              @receivers.each_value(&:lost)
              @subscribing.clear
              unanswered = @asked.values
              @asked.clear
              unanswered.each { |pending| pending.fail(OutcomeUnknown.new("the connection broke before the answer came", retryable: true)) }
              @changed.broadcast
            end
            session.close
          end
        end
      end
    end
  end
end
