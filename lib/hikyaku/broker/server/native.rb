# frozen_string_literal: true

require_relative "../../server/native_reactor"
require_relative "../native_engine"

module Hikyaku
  module Broker
    class Server
      # What Reactor is to the engine in Ruby: a Hikyaku::Server::NativeReactor carries the bytes, the hub's where there is one. Only who may is asked of
      # Ruby.
      class Native
        # Threads that decide.
        THREADS = 2
        # Connections that are being closed, beside the clients'.
        CLOSING = 32
        private_constant :THREADS, :CLOSING

        def initialize(engine, logger:, doorkeeper: nil, write_timeout: 60, drain: 10, reactor: nil, connections: 0)
          @engine = engine
          @doorkeeper = doorkeeper
          @reactor = reactor || Hikyaku::Server::NativeReactor.new(nil, write_timeout: write_timeout, drain_timeout: drain, logger: logger, max_connections: CLOSING)
          @reactor.carry(engine, max_sessions: connections)
          @listeners = []
          @ended = Thread::Queue.new
          @reactor.on_storage_failure { |error| @ended << error }
        end

        def listen(listener)
          @listeners << listener
          listener.sockets.each { |socket| @reactor.listen_broker(socket) }
        end

        # Begins. The thread's value is what has ended it: nil where it was told to stop.
        def start
          THREADS.times { |number| Thread.new { decide }.name = "hikyaku-door #{number + 1}" } if @doorkeeper
          @thread = Thread.new { @ended.pop }
        end

        # Ends what was never started, because somebody could not listen.
        def abandon
          return if @thread
          @listeners.each(&:close)
          @reactor.stop(seconds: 0)
          close_engine
        end

        # Takes no more connections and messages, waits until what is out was finished, and closes the engine.
        def stop(seconds: 10)
          return unless @thread
          @listeners.each(&:close)
          @reactor.stop(seconds: seconds)
          close_engine
          @ended << nil
        rescue StorageFailed, IOError => error
          @ended << error
        ensure
          @thread&.join
        end

        def stats = @reactor.broker_stats

        def queues = @reactor.broker_queues

        def inspect = "#<#{self.class.name} #{@engine.inspect}>"

        private

        def close_engine
          @engine.close(now: Process.clock_gettime(Process::CLOCK_MONOTONIC), wall: Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond))
        end

        def decide
          while (hello = @reactor.next_hello)
            carry_out(hello, @doorkeeper.judge(hello))
          end
        end

        def carry_out(hello, decision)
          return @reactor.refuse(hello, decision.sentence) unless decision.permitted?
          @reactor.permit(hello, decision.permissions, until_ms: decision.until_ms)
        end
      end
    end
  end
end
