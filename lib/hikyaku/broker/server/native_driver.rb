# frozen_string_literal: true

require_relative "../../server/native_reactor"
require_relative "../native_engine"

module Hikyaku
  module Broker
    class Server
      # Drives the engine in C as {Reactor} does the one in Ruby. The loop in C carries the bytes, with those of the hub in the same process,
      # and Ruby authenticates the clients.
      class NativeDriver
        # Connections that are being closed, beside those of the clients.
        MAX_CLOSING = 32
        private_constant :MAX_CLOSING

        def initialize(engine, logger:, auth_pool: nil, write_timeout: 60, drain: 10, reactor: nil, connections: 0)
          @engine = engine
          @auth_pool = auth_pool
          @reactor = reactor || Hikyaku::Server::NativeReactor.new(nil, write_timeout: write_timeout, drain_timeout: drain, logger: logger, max_connections: MAX_CLOSING)
          @reactor.carry(engine, max_sessions: connections)
          @listeners = []
          @ended = Thread::Queue.new
          @reactor.on_storage_failure { |error| @ended << error }
        end

        def listen(listener)
          @listeners << listener
          listener.sockets.each { |socket| @reactor.listen_broker(socket) }
        end

        # Starts the threads. The value of the one that it returns is the error that has ended the driver, or nil after {#stop}.
        def start
          @auth_pool&.start(@reactor.method(:next_hello)) { |hello, decision| decide(hello, decision) }
          @thread = Thread.new { @ended.pop }
        end

        # Closes a driver that was not started.
        def abandon
          return if @thread
          @listeners.each(&:close)
          @reactor.stop(seconds: 0)
          close_engine
        end

        # Stops accepting connections and messages, waits until all deliveries are settled, and closes the engine.
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

        def decide(hello, decision)
          return @reactor.refuse(hello, decision.reason) unless decision.permitted?
          @reactor.permit(hello, decision.permissions, until_ms: decision.until_ms)
        end
      end
    end
  end
end
