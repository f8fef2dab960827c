# frozen_string_literal: true

module Hikyaku
  module Broker
    class Server
      # Accepts connections from the listeners of a {Reactor}. Without a free file descriptor it pauses, as it would otherwise spin.
      class Acceptor
        # Connections that are accepted before the reactor serves the others.
        BATCH = 64
        # Seconds of a pause, and between two lines of the log about it.
        PAUSE = 0.1
        LOG_INTERVAL = 10
        private_constant :BATCH, :PAUSE, :LOG_INTERVAL

        # Seconds on the monotonic clock; nil: it accepts.
        attr_reader :paused_until

        def initialize(selector, logger:)
          @selector = selector
          @logger = logger
          @monitors = {}
        end

        def listen(listener)
          @monitors[listener] = listener.sockets.map do |socket|
            @selector.register(socket, :r).tap { |monitor| monitor.value = socket }
          end
        end

        def accept(server, now)
          BATCH.times do
            socket = server.accept_nonblock(exception: false)
            return if socket == :wait_readable
            yield socket
          end
        rescue Errno::EMFILE, Errno::ENFILE
          pause(now)
        rescue SystemCallError
          nil # the client closed the connection before it was accepted
        end

        def resume(now)
          return unless @paused_until && now >= @paused_until
          @paused_until = nil
          watch(:r)
        end

        def close
          @monitors.each do |listener, monitors|
            monitors.each(&:close)
            listener.close
          end
          @monitors.clear
        end

        private

        def pause(now)
          @paused_until = now + PAUSE
          watch(nil)
          return if @logged_at && now - @logged_at < LOG_INTERVAL
          @logged_at = now
          @logger.error("no file descriptor is left for another connection; raise the limit of the process (ulimit -n)")
        end

        def watch(interests)
          @monitors.each_value { |monitors| monitors.each { |monitor| monitor.interests = interests } }
        end
      end
    end
  end
end
