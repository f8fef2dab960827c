# frozen_string_literal: true

require_relative "../../support/clock"

module Hikyaku
  class Publisher
    # Connections that are kept for the next request. As many may be in use as there are threads that publish; only
    # so many are kept. A forked child starts with none: it forgets its parent's without closing them, since closing
    # would speak on the parent's connection.
    class Pool
      # A hub that closes idle connections after N seconds is not trusted to the last moment.
      MARGIN = 1
      private_constant :MARGIN

      def initialize(size:, keep_alive:, clock: Support::Clock::MONOTONIC, &open)
        @size = size
        @keep_alive = keep_alive
        @clock = clock
        @open = open
        @mutex = Mutex.new
        @idle = []
        @owner = Process.pid
      end

      def take
        while (connection = pop)
          return connection if fresh?(connection) && connection.usable?
          connection.discard
        end
        connection = @open.call
        connection.start
        connection
      end

      def give_back(connection)
        connection.idle_since = @clock.call
        kept = @mutex.synchronize do
          forget_parent
          @idle.push(connection) if connection.open? && @idle.size < @size
        end
        connection.discard unless kept
      end

      # Closes what is idle.
      def clear
        idle = @mutex.synchronize do
          forget_parent
          @idle.slice!(0..)
        end
        idle.each(&:discard)
      end

      def idle_count
        @mutex.synchronize do
          forget_parent
          @idle.size
        end
      end

      private

      # The last one given back is the one least likely to have been closed.
      def pop
        @mutex.synchronize do
          forget_parent
          @idle.pop
        end
      end

      def fresh?(connection)
        seconds = [@keep_alive, connection.kept_seconds && connection.kept_seconds - MARGIN].compact.min
        @clock.call - connection.idle_since <= seconds
      end

      def forget_parent
        return if @owner == Process.pid
        @idle = []
        @owner = Process.pid
      end
    end
  end
end
