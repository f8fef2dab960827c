# frozen_string_literal: true

require_relative "../../support/clock"

module Hikyaku
  class Server
    class NativeReactor
      # Calls blocks regularly on one thread, which belongs to the process that started it.
      class PeriodicTasks
        include Support::Clock

        Task = Struct.new(:seconds, :block, :at)
        private_constant :Task

        def initialize(logger)
          @logger = logger
          @tasks = []
          @lock = Mutex.new
          @changed = ConditionVariable.new
          @thread = nil
        end

        def add(seconds, block)
          @lock.synchronize do
            @tasks << Task.new(seconds, block, now + seconds)
            @changed.signal
          end
        end

        # Harmless when repeated.
        def start
          @lock.synchronize do
            next if @thread&.alive? || @tasks.empty?
            @thread = Thread.new { run }
            @thread.name = "hikyaku-periodic"
          end
        end

        def stop
          thread = @lock.synchronize { @thread.tap { @thread = nil } }
          thread.kill if thread && thread != Thread.current
        end

        private

        def run
          while (task = due)
            begin
              task.block.call
            rescue => error
              @logger&.error("reactor: #{error.class}: #{error.message} (#{error.backtrace&.first})")
            end
          end
        end

        # Waits for the next one; nil when it was stopped.
        def due
          @lock.synchronize do
            loop do
              return unless @thread == Thread.current
              task = @tasks.min_by(&:at)
              wait = task.at - now
              if wait <= 0
                task.at = now + task.seconds
                return task
              end
              @changed.wait(@lock, wait)
            end
          end
        end
      end

      private_constant :PeriodicTasks
    end
  end
end
