# frozen_string_literal: true

require_relative "../../support/clock"
require_relative "delivery"
require_relative "errors"
require_relative "unsettled_deliveries"
require_relative "../wire"

module Hikyaku
  module Broker
    class Client
      # The receiving half of a {Connection}: its receivers, the deliveries that are not settled, and the workers whose blocks run.
      #
      # The client renews a lease while a block runs, but not for longer than the receiver's timeout: the connection's thread for timers
      # calls {#overdue} when the first limit has come.
      class Consumer
        include Support::Clock

        # Acknowledgements that wait to be written together.
        MAX_ACKS = 64
        # Kinds of a NACK.
        REJECT = 1
        private_constant :MAX_ACKS, :REJECT

        attr_reader :lock, :owner

        def initialize(connection)
          @connection = connection
          @lock = connection.lock
          @owner = connection.owner
          @receivers = {}
          @subscribing = {}
          @workers = {}.compare_by_identity
          @deliveries = UnsettledDeliveries.new
          @limit_at = nil
        end

        # --- for receivers, deliveries and workers ---

        def flush = @connection.flush

        def flush_later = @connection.flush_later

        # The client was closed, which returns all deliveries.
        def closed? = @connection.failure.is_a?(Closed)

        # Reports an error that has no handler of its own.
        def report(error) = @connection.report(error)

        def subscribe(receiver)
          @lock.synchronize do
            @connection.check_open
            @receivers[receiver.number] = receiver
            request_subscription(receiver) if transport && !@connection.draining?
          end
          flush
        end

        # Ends the subscription, and returns the deliveries that were not taken.
        def unsubscribe(receiver)
          @lock.synchronize do
            next unless @receivers.delete(receiver.number)
            transport&.enqueue(Wire.unsubscribe(subscription: receiver.number))
            close_receiver(receiver)
          end
          flush
        end

        # Called with the lock.
        def send_credit(receiver)
          return unless transport && @receivers.key?(receiver.number)
          transport.enqueue(Wire.credit(subscription: receiver.number, credit: receiver.offered_credit, credit_bytes: receiver.credit_bytes))
          @connection.schedule_flush
        end

        # Acknowledges a delivery with the next write.
        #
        # @return [Boolean] false: it is not out
        def ack(delivery)
          full = @lock.synchronize do
            return false unless out?(delivery)
            delivery.state = :settled
            @deliveries.ack(delivery.number)
            @deliveries.acked_count >= MAX_ACKS
          end
          flush if full
          true
        end

        # Sends the frame that settles a delivery.
        #
        # @yieldparam id [Integer] of the request; 0: the broker answers only if it refuses
        # @return [Boolean, Symbol] as {Delivery#ack}
        def settle(delivery, wait:, &frame)
          tell(delivery, wait, frame) { remove(delivery, :settled) }
        end

        def touch(delivery, lease, wait:)
          tell(delivery, wait, ->(id) { Wire.touch(first: delivery.number, id: id, lease: lease) }) do
            time = now
            seconds = lease.zero? ? delivery.lease : lease / 1000.0
            delivery.renew(time, seconds)
            @workers.each_key { |worker| worker.touched(delivery, time, seconds) }
            @receivers[delivery.subscription]&.attended(time)
          end
        end

        # Rejects the message of a block that has run for too long and still runs.
        def time_out(delivery, reason, delay)
          tell(delivery, false, ->(id) { Wire.nack(delivery: delivery.number, id: id, kind: REJECT, delay: delay, reason: reason) }) { remove(delivery, :timed_out) }
        end

        # Tells the broker that work on a delivery starts, before it does: the work may kill this process.
        #
        # @return [Boolean] false: it is not out
        def start(delivery)
          @lock.synchronize do
            return false unless out?(delivery)
            delivery.transport.enqueue(Wire.receipt(id: delivery.number))
          end
          @connection.flush
          true
        end

        def attach(worker) = @lock.synchronize { @workers[worker] = true }

        def detach(worker) = @lock.synchronize { @workers.delete(worker) }

        # Called with the lock.
        #
        # @param time [Float, nil] when {#overdue} has to look
        def watch(time)
          return if time.nil? || (@limit_at && @limit_at <= time)
          @limit_at = time
          @connection.schedule_flush
        end

        # --- for the connection, with the lock ---

        def connected
          @receivers.each_value { |receiver| request_subscription(receiver) }
        end

        def subscribed(id) = @subscribing.delete(id)&.opened

        def pushed(push, time)
          receiver = @receivers[push.subscription]
          if receiver.nil?
            transport.enqueue(Wire.nack(delivery: push.id))
            return @connection.schedule_flush
          end
          delivery = Delivery.new(push, receiver.queue, self, transport, time)
          renewal = @deliveries.add(delivery, time)
          if @connection.draining? || receiver.paused?
            release(delivery)
            @connection.schedule_flush
          else
            receiver.arrived(delivery)
          end
          @connection.schedule_flush if renewal
        end

        # @return [Boolean] the refusal was that of a subscription
        def refused(frame, error)
          receiver = @subscribing.delete(frame.id) || (@receivers[frame.subscription] if frame.ends_subscription?) or return false
          @receivers.delete(receiver.number)
          receiver.fail(error)
          true
        end

        # @return [Boolean] the delivery was out
        def stale(number)
          delivery = @deliveries.remove(number) or return false
          delivery.state = :stale
          true
        end

        # The broker drains: another one may have what no block has begun with.
        def release_waiting
          @receivers.each_value { |receiver| receiver.withdraw_waiting.each { |delivery| release(delivery) } }
          @connection.schedule_flush
        end

        # The client drains.
        def close_receivers
          @receivers.each_value { |receiver| close_receiver(receiver) }
          @receivers.clear
        end

        def disconnected
          @deliveries.clear.each { |delivery| delivery.state = :stale }
          @receivers.each_value(&:disconnected)
          @subscribing.clear
        end

        def fail_all(error)
          @receivers.each_value { |receiver| receiver.fail(error) }
        end

        # Every delivery is settled, and the broker was told.
        def empty? = @deliveries.empty?

        def enqueue_acks
          @deliveries.each_ack_frame { |frame| transport.enqueue(frame) } if @deliveries.acked? && transport
        end

        def renew_leases(time)
          return unless @deliveries.renew_at&.<=(time)
          enqueue_acks
          @deliveries.renew(time).each { |frame| transport.enqueue(frame) }
        end

        # @return [Float, nil] when a lease is to be renewed, or a limit comes
        def due_at = [@deliveries.renew_at, @limit_at].compact.min

        # Pauses the receivers that no block attends to.
        #
        # @return [Array<Array(Worker, Delivery)>] blocks that have run for too long
        def overdue(time)
          return [] unless @limit_at && @limit_at <= time
          @receivers.each_value { |receiver| pause(receiver) if receiver.limit_at&.<=(time) }
          found = @workers.each_key.filter_map { |worker| worker.overdue(time)&.then { |delivery| [worker, delivery] } }
          @limit_at = [*@workers.each_key.filter_map(&:limit_at), *@receivers.each_value.filter_map(&:limit_at)].min
          found
        end

        private

        def transport = @connection.transport

        # A forked child does not settle what its parent has received.
        def out?(delivery)
          delivery.state == :out && (current = transport) && delivery.transport.equal?(current) && @owner == Process.pid
        end

        def request_subscription(receiver)
          id = @connection.next_id
          @subscribing[id] = receiver
          transport.enqueue(receiver.frame(id))
        end

        def tell(delivery, wait, frame)
          pending = @lock.synchronize do
            return false unless out?(delivery)
            if wait
              answer = @connection.enqueue_request(&frame)
            else
              transport.enqueue(frame.call(0))
              @connection.schedule_flush
            end
            yield
            answer
          end
          return :unconfirmed unless pending
          flush
          pending.value
          true
        rescue Stale
          @lock.synchronize { delivery.state = :stale }
          false
        end

        def remove(delivery, state)
          delivery.state = state
          @deliveries.remove(delivery.number)
        end

        def release(delivery)
          return unless out?(delivery)
          remove(delivery, :settled)
          transport.enqueue(Wire.nack(delivery: delivery.number))
        end

        def close_receiver(receiver)
          receiver.finish.each { |delivery| release(delivery) }
          @connection.schedule_flush
        end

        def pause(receiver)
          receiver.paused = true
          send_credit(receiver)
          receiver.withdraw_waiting.each { |delivery| release(delivery) }
        end
      end
    end
  end
end
