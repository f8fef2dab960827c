# frozen_string_literal: true

require_relative "message"
require_relative "queue"

module Hikyaku
  module Broker
    class RubyEngine
      # What becomes of messages and queues between their coming and their going.
      module Keeping
        FAILURES = 1
        CRASHES = 2
        SAID_SO = 3
        private_constant :FAILURES, :CRASHES, :SAID_SO

        private

        # It waits from now on, for its time or for a receiver.
        def wait(message, delay)
          if delay > 0
            message.state = :delayed
            message.due = @wall + delay
            message.due_slot = @dues.add(@now + delay / 1000.0, message)
            message.queue.delayed[message] = true
            @delayed += 1
          else
            message.due = 0
            message.queue.push(message)
          end
        end

        # Its time has come.
        def come_due(message)
          message.queue.delayed.delete(message)
          message.due_slot = nil
          message.due = 0
          @delayed -= 1
          message.queue.push(message)
        end

        # A delivery has ended without its message being done with.
        #
        # @param cause [Symbol] :crash, :failure, :release, :dead or :return
        def come_back(delivery, cause, delay: 0, words: "")
          message = delivery.message
          take_back(delivery)
          message.came_back(cause)
          count(message.queue, cause)
          reason = reason_of_death(message, cause)
          if reason
            bury(message, reason, words)
          elsif message.expires > 0 && message.expiry_slot.nil?
            return expire(message)
          else
            wait(message, delay)
          end
          @ledger&.changed(message, delay: (message.state == :delayed) ? delay : 0)
        end

        def reason_of_death(message, cause)
          case cause
          when :dead then SAID_SO
          when :failure then FAILURES if message.failures >= @limits.max_failures
          when :crash then CRASHES if message.crashes >= @limits.max_crashes
          end
        end

        def count(queue, cause)
          case cause
          when :crash
            @crashed += 1
            queue.crashed += 1
          when :failure, :dead
            @failures += 1
            queue.failed += 1
          when :release then @released += 1
          end
        end

        # A delivery is over: its receiver has credit for another.
        def take_back(delivery)
          message = delivery.message
          delivery.subscription.session.deliveries.delete(delivery.id)
          @leases.cancel(delivery.slot, delivery)
          message.delivery = nil
          message.queue.out -= 1
          delivery.subscription.returned(message.size)
          may_receive(delivery.subscription)
        end

        # A dead letter has no time to live any more.
        def bury(message, reason, words)
          message.state = :dead
          message.reason = reason
          message.words = words
          message.due = 0
          message.expiry_slot = @expiries.cancel(message.expiry_slot, message)
          message.queue.dead[message.id] = message
          @dead += 1
        end

        # It waits again, as if for the first time.
        def replay(message)
          message.queue.dead.delete(message.id)
          @dead -= 1
          message.forgive
          message.expires = 0
          wait(message, 0)
          @ledger&.changed(message)
        end

        # A receiver is done with it.
        def finish(delivery)
          message = delivery.message
          take_back(delivery)
          message.queue.freed += 1
          @freed += 1
          remove(message)
        end

        def expire(message)
          queue = message.queue
          queue.expired += 1
          @expired += 1
          remove(message)
          # Who was passed over for its size may take the next one.
          dispatch(queue) if queue.aside.any?
        end

        def remove(message)
          queue = message.queue
          was = message.state
          message.state = :gone
          case was
          when :ready then queue.lost(message)
          when :delayed
            queue.delayed.delete(message)
            @dues.cancel(message.due_slot, message)
            @delayed -= 1
          when :dead
            queue.dead.delete(message.id)
            @dead -= 1
          end
          @expiries.cancel(message.expiry_slot, message) if message.expiry_slot
          @messages.delete(message.id)
          queue.bytes -= message.size
          @bytes -= message.size
          @content_bytes -= message.size if message.content
          message.content = nil
          @ledger&.free(message)
          rest(queue)
        end

        # @return [Queue, nil] one that there is, or that may be made; nil: there are too many
        def queue_for(name, kind, key = Queue.key(name, kind))
          queue = @queues[key]
          return queue if queue
          return unless @queues.size < @limits.max_queues || forget_longest_idle
          @next_queue += 1
          Queue.new(name, kind, @next_queue - 1)
        end

        # A queue is made by its first message or subscription.
        def make(queue)
          queue.made = true
          @queues[queue.key] = queue
        end

        # Nobody uses it now.
        def rest(queue)
          return unless queue.idle?
          @idles.cancel(queue.idle_slot, queue)
          queue.idle_slot = @idles.add(@now + @limits.queue_idle, queue)
          @idle_queues.delete(queue)
          @idle_queues[queue] = true
        end

        # A queue that nobody uses is forgotten early for one that somebody does.
        #
        # @return [Boolean] there was one
        def forget_longest_idle
          while (queue, = @idle_queues.first)
            next @idle_queues.delete(queue) unless queue.idle?
            forget_queue(queue)
            return true
          end
          false
        end

        def forget_queue(queue)
          queue.idle_slot = @idles.cancel(queue.idle_slot, queue)
          @idle_queues.delete(queue)
          @queues.delete(queue.key)
        end
      end
    end
  end
end
