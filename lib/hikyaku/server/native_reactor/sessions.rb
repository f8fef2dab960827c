# frozen_string_literal: true

require "socket"

module Hikyaku
  class Server
    class NativeReactor
      # The broker's side: the reactor carries the bytes of a broker, beside those of the hub or alone.
      #
      #     reactor = NativeReactor.new(nil, broker: engine)             or reactor.carry(engine), before it has anything to do
      #     reactor.on_storage_failure { |error| … }
      #     reactor.listen_broker(UNIXServer.new(path))
      #     while (hello = reactor.next_hello)                           on a thread, unless the engine is `open`
      #       reactor.permit(hello, [Broker::Permission.all])            or refuse
      #     end
      #     reactor.stop
      #     engine.close(now: …, wall: …)
      #
      # What may take long at the disk has threads of its own, which Ruby does not see.
      module Sessions
        # Carries a broker, too. Once, before the reactor has anything to do.
        def carry(broker, hello_timeout: 10, max_sessions: 0)
          raise IOError, "the reactor runs already" if _open?
          @broker = broker
          @options = {**@options, hello_timeout: hello_timeout, max_sessions: max_sessions}
        end

        # Accepts connections of the broker's clients.
        def listen_broker(socket)
          raise IOError, "the reactor has no broker" unless @broker
          own!
          _listen_broker(socket.fileno, socket.is_a?(TCPServer)) or raise IOError, "the reactor is stopping"
        end

        # Waits for somebody about whom it is to be decided.
        def next_hello(timeout: nil) = wait_for(timeout) { |seconds| _next_hello(seconds) }

        def permit(hello, permissions, until_ms: nil)
          _permit(hello, permissions.map { |permission| [permission.pattern, permission.rights] }, until_ms)
        end

        def refuse(hello, sentence) = _refuse(hello, sentence)

        # Calls the block, on the reactor's thread, when the broker's storage has failed: clients are told, and the broker
        # takes nothing any more, so that the process should end. It is logged in any case.
        def on_storage_failure(&block)
          @on_storage_failure = block
        end

        attr_reader :storage_failure

        def broker_stats
          @broker&.stats
        rescue IOError
          nil
        end

        def broker_queues
          @broker&.queues(wall: Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond))
        rescue IOError
          nil
        end

        private

        # The loop comes back when the storage fails.
        def look_at_storage
          return if @storage_failure
          trouble = _storage_trouble or return
          @storage_failure = @broker.class.failure(trouble)
          @logger&.error("the broker's storage has failed: #{@storage_failure.message}. It takes nothing any more; what was not acknowledged is in doubt")
          @on_storage_failure&.call(@storage_failure)
        end
      end

      include Sessions
    end
  end
end
