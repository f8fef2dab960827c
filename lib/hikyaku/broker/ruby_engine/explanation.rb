# frozen_string_literal: true

require_relative "text"
require_relative "timer_wheel"

module Hikyaku
  module Broker
    class RubyEngine
      # Where a message is, and why it is not delivered.
      class Explanation
        # By the cause of death.
        DEATHS = ["", "it has failed too often", "its receivers have vanished with it too often", "its receiver said that it is dead"].freeze
        private_constant :DEATHS

        def initialize(parts)
          @parts = parts
          @clock = parts.clock
        end

        def describe(message)
          found = {id: message.id, queue: text(message.queue.name), kind: message.queue.kind, state: message.state, age_ms: @parts.reports.age(message),
                   priority: message.priority, level: message.level, failures: message.failures, crashes: message.crashes, returns: message.returns, bytes: message.size}
          found[:reason] = message.death if message.state == :dead
          found[:due_in_ms] = left(message.due, message.due_timer) if message.state == :delayed
          found[:expires_in_ms] = left(message.expires, message.expiry_timer) if message.expires > 0 && message.state != :dead
          found[:segment] = message.segment if message.segment
          found[:holder] = describe_holder(message.delivery) if message.delivery
          found
        end

        def reason(message)
          case message.state
          when :out then "a receiver has it"
          when :delayed then "its time has not come"
          when :dead then DEATHS[message.death]
          else reason_for_waiting(message)
          end
        end

        private

        def text(bytes) = Text.readable(bytes)

        # To the millisecond as long as the wall clock was not set; then to a slot of the timer, which is what counts.
        def left(wall, timer)
          return 0 unless timer
          by_timer = (TimerWheel.end_of(timer) - @clock.now) * 1000
          [(by_timer - (wall - @clock.wall)).between?(-1, TimerWheel::SLOT * 1000 + 1) ? wall - @clock.wall : by_timer.round, 0].max
        end

        def describe_holder(delivery)
          session = delivery.subscription.session
          {identity: text(session.identity), session: session.serial, delivery: delivery.id,
           lease_in_ms: [((delivery.deadline - @clock.now) * 1000).ceil, 0].max, agent: session.agent}
        end

        def reason_for_waiting(message)
          queue = message.queue
          return "the broker is about to stop" if @parts.draining
          return "nobody receives from this queue" if queue.receivers.empty?
          fitting = queue.receivers.each_key.select { |each| @parts.deliveries.fits?(each, message) }
          return too_large(queue, message) if fitting.empty?
          unspent = fitting.select { |each| each.out < each.credit }
          return passed_over(unspent) if unspent.any?(&:lapsed)
          return "its receiver has vanished with it: it waits for one that has nothing else" if message.suspect?
          return "messages before it wait for receivers, none of which is free" unless queue.first.equal?(message)
          return "a receiver has a suspect, and gets nothing else until it is done with it" if unspent.any?(&:exclusive)
          return "a receiver is kept free for a suspect, and gets nothing else before it" if unspent.include?(queue.reserved)
          return "who has credit left has said that it leaves" if unspent.any? { |each| each.session.draining }
          return "who has credit left does not read what was sent to it" if unspent.any? { |each| each.session.paused }
          "no receiver has credit left"
        end

        def too_large(queue, message)
          widest = queue.receivers.each_key.max_by { |each| each.session.max_frame }
          "no receiver takes a message of this size: its PUSH has #{@parts.deliveries.push_bytes(message.size)} bytes, and the largest frame that any of them takes has " \
            "#{widest.session.max_frame}: #{name_of(widest.session)}"
        end

        def passed_over(receivers)
          lapsed = receivers.select(&:lapsed)
          others = {1 => "", 2 => ", and another"}.fetch(lapsed.size) { |count| ", and #{count - 1} others" }
          "a receiver let a lease end and has said nothing since; it is passed over until it says FREE, NACK, CREDIT or ACK of a PUSH, " \
            "or connects again: #{name_of(lapsed.first.session)}#{others}"
        end

        def name_of(session)
          identity = ", identity \"#{text(session.identity)}\"" unless session.identity.empty?
          agent = ", agent \"#{session.agent}\"" unless session.agent.empty?
          "session #{session.serial}#{identity}#{agent}"
        end
      end
    end
  end
end
