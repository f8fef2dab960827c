# frozen_string_literal: true

require "socket"
require_relative "../../errors"
require_relative "../../wire"
require_relative "../connection"

module Hikyaku
  module Broker
    class Server
      class Reactor
        # Of a reactor: how connections come.
        module Arrivals
          # Connections that are accepted between two looks at the others.
          ACCEPTS = 64
          # Seconds for which nothing is accepted when no file is left for a connection, and between two lines of the log
          # about it.
          PAUSE = 0.1
          SILENCE = 10
          # Milliseconds after which who was turned away may come back.
          COME_BACK = 1000
          # Seconds after which who has not said HELLO gives its place to another.
          HESITATION = 1
          private_constant :ACCEPTS, :PAUSE, :SILENCE, :COME_BACK, :HESITATION

          def listen(listener)
            @listeners[listener] = listener.sockets.map do |socket|
              @selector.register(socket, :r).tap { |monitor| monitor.value = socket }
            end
          end

          private

          def accept(server)
            ACCEPTS.times do
              socket = server.accept_nonblock(exception: false)
              return if socket == :wait_readable
              welcome(socket)
            end
          rescue Errno::EMFILE, Errno::ENFILE
            pause
          rescue SystemCallError
            nil # gone before it was accepted
          end

          def welcome(socket)
            session = connect(Connection.address(socket))
            prepare(socket)
            connection = Connection.new(socket, session, @selector.register(socket, :r))
            connection.monitor.value = connection
            @connections[session] = connection
            @strangers[connection] = @now + @hello_timeout
          rescue TooManyConnections => error
            turn_away(socket, error)
          rescue IOError, SystemCallError
            # The client is gone already.
            socket.close
            @engine.disconnect(session, now: @now, wall: @wall) if session
          end

          def connect(address)
            @engine.connect(address: address, now: @now)
          rescue TooManyConnections
            raise unless evict_oldest
            @engine.connect(address: address, now: @now)
          end

          def evict_oldest
            oldest, deadline = @strangers.first
            return false unless oldest && deadline - @hello_timeout + HESITATION <= @now && oldest.session.new?
            release(oldest)
            true
          end

          # A client that vanished without a word confirms nothing of what the kernel has taken for it.
          def prepare(socket)
            return unless socket.is_a?(TCPSocket)
            socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
            return unless Socket.const_defined?(:TCP_USER_TIMEOUT)
            socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_USER_TIMEOUT, (@write_timeout * 1000).ceil)
          end

          def turn_away(socket, error)
            socket.write_nonblock(Wire.error(code: Wire::Code::LIMIT, sentence: error.message, scope: 2, retry_after: COME_BACK), exception: false)
          rescue SystemCallError
            nil
          ensure
            socket.close
          end

          # To accept is tried again, not at once: it would be tried for ever.
          def pause
            @paused_until = @now + PAUSE
            @listeners.each_value { |monitors| monitors.each { |monitor| monitor.interests = nil } }
            return if @complained && @now - @complained < SILENCE
            @complained = @now
            @logger.error("no file is left for another connection; raise the limit of the process (ulimit -n)")
          end

          def resume
            @paused_until = nil
            @listeners.each_value { |monitors| monitors.each { |monitor| monitor.interests = :r } }
          end
        end
      end
    end
  end
end
