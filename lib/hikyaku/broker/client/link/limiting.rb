# frozen_string_literal: true

require_relative "../../wire"

module Hikyaku
  module Broker
    class Client
      class Link
        # How long the client renews leases for blocks that hang, and for deliveries that nobody asks for. The pacer looks when
        # the first limit has come; every limit is a time on the monotonic clock.
        module Limiting
          # Called with the lock.
          def watch(at)
            return if at.nil? || (@look_at && @look_at <= at)
            @look_at = at
            wake
          end

          def attach(worker) = @lock.synchronize { @workers[worker] = true }

          def detach(worker) = @lock.synchronize { @workers.delete(worker) }

          # Somebody asks a receiver for deliveries again that had been paused. Called with the lock.
          def say_credit(receiver)
            return unless @session && @receivers.key?(receiver.number)
            @session.gather(Wire.credit(subscription: receiver.number, credit: receiver.offered_credit, credit_bytes: receiver.credit_bytes))
            wake
          end

          # Its block runs on, and its message is for others.
          def time_out(delivery, words, seconds)
            delay = Link.milliseconds(seconds)
            told(delivery, false, ->(id) { Wire.nack(delivery: delivery.number, id: id, kind: 1, delay: delay, words: words) }) do
              delivery.state = :timed_out
              @deliveries.remove(delivery.number)
            end
          end

          # Tells an error for which a subscription has no handler.
          def tell(error) = @on_error ? @on_error.call(error) : warn("hikyaku: #{error.message}")

          private

          # Called with the lock.
          def look(time)
            return [] unless @look_at && @look_at <= time
            @receivers.each_value { |receiver| hold_back(receiver) if receiver.limit_at&.<=(time) }
            overdue = @workers.each_key.filter_map { |worker| worker.give_up(time)&.then { |delivery| [worker, delivery] } }
            @look_at = [*@workers.each_key.filter_map(&:limit_at), *@receivers.each_value.filter_map(&:limit_at)].min
            overdue
          end

          # What waits here would wait for as long as the block hangs, or nobody asks.
          def hold_back(receiver)
            receiver.paused = true
            say_credit(receiver)
            receiver.emptied.each { |delivery| hand_back(delivery) }
          end

          def report(overdue)
            overdue.each do |worker, delivery|
              Thread.new do
                Thread.current.name = "hikyaku block timeout"
                worker.time_out(delivery)
                flush
              end
            end
          end
        end
      end
    end
  end
end
