# frozen_string_literal: true

module Hikyaku
  module Broker
    class Server
      # What an engine leaves to others because it may wait for the disk: a thread that does it again and again, as long as it is
      # wanted. While it is done once, what is asked for gathers for the next time. The methods are for the engine's
      # thread.
      class Errand
        def initialize(name, wanted:, piece:, done:)
          @name = name
          @wanted = wanted
          @piece = piece
          @done = done
          @out = Thread::Queue.new
          @back = Thread::Queue.new
        end

        def send_out
          return if @busy || !@wanted.call
          @thread ||= Thread.new { work }.tap { |thread| thread.name = @name }
          @busy = true
          @out << true
        end

        # Takes note of what was done.
        def take_back
          settle unless @back.empty?
        end

        # Waits for what is being done: an engine is closed while nothing is.
        def settle
          return unless @busy
          error = @back.pop
          @busy = false
          raise error if error
        end

        def close
          @out.close
        end

        private

        def work
          while @out.pop
            @back << try
            @done.call
          end
        end

        def try
          @piece.call
          nil
        rescue Exception => error # standard:disable Lint/RescueException
          error # raised where it is waited for
        end
      end
    end
  end
end
