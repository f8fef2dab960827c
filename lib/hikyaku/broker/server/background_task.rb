# frozen_string_literal: true

module Hikyaku
  module Broker
    class Server
      # Runs a piece of work that waits for the disk in a thread of its own, again and again as long as there is some. Requests that come
      # during a run share the next one. The methods are for the engine's thread.
      class BackgroundTask
        def initialize(name, wanted:, work:, done:)
          @name = name
          @wanted = wanted
          @work = work
          @done = done
          @runs = Thread::Queue.new
          @results = Thread::Queue.new
        end

        def start
          return if @running || !@wanted.call
          @thread ||= Thread.new { loop_runs }.tap { |thread| thread.name = @name }
          @running = true
          @runs << true
        end

        # Raises the error of a run that has ended.
        def check
          join unless @results.empty?
        end

        # Waits for the run under way: an engine must not be closed during one.
        def join
          return unless @running
          error = @results.pop
          @running = false
          raise error if error
        end

        def close = @runs.close

        private

        def loop_runs
          while @runs.pop
            @results << run
            @done.call
          end
        end

        def run
          @work.call
          nil
        rescue Exception => error # standard:disable Lint/RescueException
          error # {#join} raises it in the engine's thread
        end
      end
    end
  end
end
