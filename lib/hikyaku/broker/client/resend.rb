# frozen_string_literal: true

module Hikyaku
  module Broker
    class Client
      # What a new connection has to send before anything else, and how much of it at once: all, unless the connection before broke
      # under it.
      #
      # A path that breaks after so many bytes would break each time at the same place, before an answer came back. So a
      # connection that broke without any answer lets the next one send half as much at once, down to one message; each
      # answer lets one more go, and makes room for another. An acknowledgement costs two additions.
      #
      # Every method is called with the client's lock.
      class Resend
        def initialize
          @waiting = []
          @burst = Float::INFINITY
          @sent = @answered = 0
        end

        # A new connection.
        def begin(pendings)
          @burst = [[@sent, @burst].min / 2, 1].max if @sent.positive? && @answered.zero?
          @waiting = pendings.dup.each { |pending| pending.waiting = true }
          @sent = @answered = 0
        end

        def waiting? = !@waiting.empty?

        def push(pending)
          pending.waiting = true
          @waiting << pending
        end

        def delete(pending)
          @waiting.delete(pending) if pending.waiting
        end

        # Takes what may go now.
        def each_due
          while @sent - @answered < @burst && (pending = @waiting.shift)
            pending.waiting = false
            @sent += pending.count
            yield pending
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
