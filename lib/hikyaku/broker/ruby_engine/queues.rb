# frozen_string_literal: true

require_relative "queue"
require_relative "timer_wheel"

module Hikyaku
  module Broker
    class RubyEngine
      # The table of queues. A queue exists from its first message or subscription on, until it was idle for long or its place is needed.
      class Queues
        # Number of the next queue.
        attr_accessor :next_number

        def initialize(parts)
          @parts = parts
          @clock = parts.clock
          @queues = {}
          @idle = {}.compare_by_identity
          @idle_timers = TimerWheel.new
          @next_number = 1
        end

        def [](key) = @queues[key]

        def key?(key) = @queues.key?(key)

        def each(&block) = @queues.each_value(&block)
        include Enumerable

        def size = @queues.size

        # Returns the queue, or a new one that is not registered yet; nil: there are as many as there may be.
        def find_or_create(name, kind, key = Queue.key(name, kind))
          queue = @queues[key]
          return queue if queue
          return unless @queues.size < @parts.limits.max_queues || evict
          @next_number += 1
          Queue.new(name, kind, @next_number - 1)
        end

        def register(queue)
          queue.registered = true
          @queues[queue.key] = queue
        end

        def delete(queue) = @queues.delete(queue.key)

        # Notes that a queue may be without messages and receivers now.
        def check_idle(queue)
          return unless queue.idle?
          @idle_timers.cancel(queue.idle_timer, queue)
          queue.idle_timer = @idle_timers.add(@clock.now + @parts.limits.queue_idle, queue)
          @idle.delete(queue)
          @idle[queue] = true
        end

        # A queue without messages need not exist after a restart: each segment names the queues of its own messages.
        def drop_idle = @queues.delete_if { |_, queue| queue.idle? }

        def run_timers(most)
          @idle_timers.expire(@clock.now, most: most) do |queue|
            queue.idle_timer = nil
            forget(queue) if queue.idle?
          end
        end

        def next_timer = @idle_timers.next_at

        def clear = [@queues, @idle].each(&:clear)

        private

        # Forgets the queue that is idle for longest; false: none is idle.
        def evict
          while (queue, = @idle.first)
            next @idle.delete(queue) unless queue.idle?
            forget(queue)
            return true
          end
          false
        end

        def forget(queue)
          queue.idle_timer = @idle_timers.cancel(queue.idle_timer, queue)
          @idle.delete(queue)
          @queues.delete(queue.key)
        end
      end
    end
  end
end
