# frozen_string_literal: true

module Hikyaku
  module Broker
    class Client
      # The requests that a new connection sends before all others. It limits how many messages are unanswered at once, as a congestion
      # window does.
      #
      # A path that breaks after a number of bytes would break at the same place each time, before an answer comes back. Therefore a
      # connection that broke without an answer halves the burst of the next one, down to one message. Each answer releases one message
      # and raises the burst by one.
      #
      # Every method is called with the connection's lock.
      class RetransmitQueue
        def initialize
          @queue = []
          @burst = Float::INFINITY
          @sent = @answered = 0
        end

        def reset(requests)
          @burst = [[@sent, @burst].min / 2, 1].max if @sent.positive? && @answered.zero?
          @queue = requests.dup.each { |request| request.queued = true }
          @sent = @answered = 0
        end

        def any? = !@queue.empty?

        def push(request)
          request.queued = true
          @queue << request
        end

        def delete(request)
          @queue.delete(request) if request.queued
        end

        # Removes and yields the requests that may be sent now.
        def each_due
          while @sent - @answered < @burst && (request = @queue.shift)
            request.queued = false
            @sent += request.count
            yield request
          end
        end

        def answered(count)
          @answered += count
          @burst += count
        end
      end
    end
  end
end
