# frozen_string_literal: true

require_relative "message"
require_relative "timer_wheel"

module Hikyaku
  module Broker
    class RubyEngine
      # The messages that are not done with: where they wait, what expires, and what memory they take.
      class Messages
        # Causes of death, as the journal and reports have them.
        FAILURES = 1
        CRASHES = 2
        REJECTED = 3

        # Number of the next message, and the number from which on none is reserved in the journal.
        attr_accessor :next_number, :reserved
        # Counters; `bytes` are those of all contents.
        attr_reader :bytes, :delayed, :dead, :expired, :freed

        def initialize(parts)
          @parts = parts
          @clock = parts.clock
          @messages = {}
          @due = TimerWheel.new
          @expiries = TimerWheel.new
          @next_number = 1
          @reserved = 0
          @bytes = @content_bytes = @delayed = @dead = @expired = @freed = 0
        end

        def [](id) = @messages[id]

        def each(&block) = @messages.each_value(&block)
        include Enumerable

        def size = @messages.size

        # Adds one that was sent now. `delay` and `time_to_live` are milliseconds.
        def add(message, delay, time_to_live)
          queue = message.queue
          @parts.queues.register(queue) unless queue.registered
          @messages[message.id] = message
          queue.sent += 1
          account(message)
          message.expiry_timer = @expiries.add(@clock.now + time_to_live / 1000.0, message) if time_to_live > 0
          enqueue(message, delay)
        end

        # Adds what was read from the journal, before any of it is put into its place.
        def restore(message)
          older = @messages[message.id]
          @messages[message.id] = message
          @next_number = message.id + 1 if message.id >= @next_number
          older
        end

        def restore_gone(id)
          @next_number = id + 1 if id >= @next_number
        end

        def delete(id) = @messages.delete(id)

        # Copies in the journal may stand out of order.
        def sort
          ids = @messages.keys.sort
          @messages = ids.to_h { |id| [id, @messages[id]] } unless ids == @messages.keys
        end

        def account(message)
          message.queue.bytes += message.size
          @bytes += message.size
          @content_bytes += message.size
        end

        # Lets it wait for its time, in milliseconds, or for a receiver.
        def enqueue(message, delay)
          if delay > 0
            message.state = :delayed
            message.due = @clock.wall + delay
            message.due_timer = @due.add(@clock.now + delay / 1000.0, message)
            message.queue.delayed[message] = true
            @delayed += 1
          else
            message.due = 0
            message.queue.push(message)
          end
        end

        def expire_after(message, milliseconds) = message.expiry_timer = @expiries.add(@clock.now + milliseconds / 1000.0, message)

        # Makes it a dead letter, which has no time to live any more.
        def bury(message, death, reason)
          message.state = :dead
          message.death = death
          message.reason = reason
          message.due = 0
          message.expiry_timer = @expiries.cancel(message.expiry_timer, message)
          message.queue.dead[message.id] = message
          @dead += 1
        end

        # Lets a dead letter wait again, as if for the first time.
        def revive(message)
          message.queue.dead.delete(message.id)
          @dead -= 1
          message.reset_counts
          message.expires = 0
          enqueue(message, 0)
          @parts.store&.changed(message)
        end

        # Removes one that a receiver is done with.
        def free(message)
          message.queue.freed += 1
          @freed += 1
          remove(message)
        end

        def expire(message)
          queue = message.queue
          queue.expired += 1
          @expired += 1
          remove(message)
          # A receiver that was skipped for its size may take the next one.
          @parts.deliveries.dispatch(queue) if queue.skipped.any?
        end

        def remove(message)
          queue = message.queue
          leave_place(message, queue)
          @expiries.cancel(message.expiry_timer, message) if message.expiry_timer
          @messages.delete(message.id)
          queue.bytes -= message.size
          @bytes -= message.size
          @content_bytes -= message.size if message.content
          message.content = nil
          @parts.store&.free(message)
          @parts.queues.check_idle(queue)
        end

        # Drops a content from memory that is on the disk and has to wait. Contents may have a quarter of the memory, and more as far as
        # there is room.
        def release_content(message)
          return if message.segment.nil? || message.state == :out || message.content.nil?
          return if @content_bytes <= @parts.limits.max_memory / 4 && memory_bytes <= @parts.limits.max_memory
          message.content = nil
          @content_bytes -= message.size
        end

        def index_bytes = @messages.size * Message::INDEX_BYTES

        def memory_bytes = @content_bytes + index_bytes

        def run_timers(most)
          @expiries.expire(@clock.now, most: most) do |message|
            message.expiry_timer = nil
            expire(message) unless message.state == :out
          end
          queues = {}.compare_by_identity
          @due.expire(@clock.now, most: most) do |message|
            come_due(message)
            queues[message.queue] = true
          end
          queues.each_key { |queue| @parts.deliveries.dispatch(queue) }
        end

        def next_timer = [@due.next_at, @expiries.next_at].compact.min

        def clear = @messages.clear

        private

        def come_due(message)
          message.queue.delayed.delete(message)
          message.due_timer = nil
          message.due = 0
          @delayed -= 1
          message.queue.push(message)
        end

        def leave_place(message, queue)
          was = message.state
          message.state = :gone
          case was
          when :ready then queue.lost(message)
          when :delayed
            queue.delayed.delete(message)
            @due.cancel(message.due_timer, message)
            @delayed -= 1
          when :dead
            queue.dead.delete(message.id)
            @dead -= 1
          end
        end
      end
    end
  end
end
