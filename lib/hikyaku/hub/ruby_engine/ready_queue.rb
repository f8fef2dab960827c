# frozen_string_literal: true

module Hikyaku
  class Hub
    class RubyEngine
      # The subscribers that have something pending of their own: control bytes, more events than one write took, or their end.
      # Those that scan the log with costly patterns wait apart, because each turn has an allowance for them.
      class ReadyQueue
        def initialize
          @ready = []
          @scanning = []
        end

        def <<(subscriber)
          add(@ready, subscriber)
        end

        def add_scanning(subscriber) = add(@scanning, subscriber)

        def shift = first_of(@ready)

        def shift_scanning = first_of(@scanning)

        def empty? = @ready.empty?

        def scanning? = !@scanning.empty?

        # Sends bytes to one subscriber at the next event boundary.
        def say(subscriber, frame)
          subscriber.say(frame)
          self << subscriber
        end

        # Marks a subscriber to be closed by the driver.
        def close(subscriber, reason)
          return if subscriber.closing || subscriber.closed
          subscriber.closing = reason
          self << subscriber
        end

        private

        def add(list, subscriber)
          return if subscriber.ready
          subscriber.ready = true
          list << subscriber
        end

        def first_of(list)
          while (subscriber = list.shift)
            subscriber.ready = false
            next if subscriber.closed
            return subscriber if subscriber.closing || !subscriber.blocked
          end
        end
      end
      private_constant :ReadyQueue
    end
  end
end
