# frozen_string_literal: true

require_relative "../../support/clock"
require_relative "errors"
require_relative "forwarding"

module Hikyaku
  module HTTP
    class Proxy
      # Decides which connections the proxy serves, and rejects the others with 503.
      #
      # With authentication, unauthenticated connections have places of their own. There are few of them, and the oldest goes if there is one too many, so that
      # silent clients lock nobody out.
      class Admission
        MAX_UNAUTHENTICATED = 32
        FULL = "there are too many connections: try again soon"
        private_constant :MAX_UNAUTHENTICATED, :FULL

        def initialize(max:, authentication:, max_unauthenticated: MAX_UNAUTHENTICATED)
          @max = max
          @authentication = authentication
          @max_unauthenticated = max_unauthenticated
          @lock = Mutex.new
          @threads = {}.compare_by_identity
          @authenticated = {}.compare_by_identity
          @unauthenticated = {}.compare_by_identity
          @rejected = Rejected.new
        end

        # The next connection to serve, if there is one. Raises {ResourceExhausted::ERRORS}.
        def accept(server)
          socket = server.accept_nonblock(exception: false)
          return if socket == :wait_readable
          return socket if @lock.synchronize { @threads.size } < @max + (@authentication ? 2 * @max_unauthenticated : 0)
          @rejected.add(socket, FULL)
          nil
        end

        # Serves a connection in a thread, which the block is.
        def serve(socket)
          socket.setsockopt(:TCP, :NODELAY, 1)
          expect_authentication(socket) if @authentication
          @lock.synchronize { @threads[socket] = Thread.new { yield socket } }
        rescue SystemCallError # the client has closed it
          release(socket)
          socket.close
        end

        # Whether there is a place for a connection that has authenticated itself, or need not.
        def authenticated(socket)
          @lock.synchronize do
            @unauthenticated.delete(socket)
            !@authentication || (@authenticated.size < @max && @authenticated[socket] = true)
          end
        end

        def release(socket) = @lock.synchronize { [@threads, @authenticated, @unauthenticated].each { |sockets| sockets.delete(socket) } }

        # Rejects a connection by means of the reserved descriptor.
        def reject(server) = @rejected.accept(server, ResourceExhausted::TEXT)

        # Reserves the descriptor again.
        def reserve = @rejected.reserve

        def empty? = size.zero?

        def size = @lock.synchronize { @threads.size }

        def close
          @rejected.close
          @lock.synchronize { @threads.values }.each(&:kill)
        end

        private

        def expect_authentication(socket)
          oldest = @lock.synchronize do
            @unauthenticated[socket] = true
            @unauthenticated.shift&.first if @unauthenticated.size > @max_unauthenticated
          end
          oldest&.shutdown
        rescue SystemCallError, IOError
          nil # the client has closed it
        end

        # Connections that got 503. An immediate close would reset them with unread bytes, and the browser would lose the response (RFC 9112, section 9.6): each
        # is read for a moment.
        class Rejected
          include Support::Clock

          # The proxy closes further ones at once.
          MAX = 16
          LINGER = 1.0 # seconds
          PIECE = 65_536
          private_constant :MAX, :LINGER, :PIECE

          def initialize
            @lock = Mutex.new
            @sockets = {}.compare_by_identity
            @thread = nil
            reserve
          end

          def add(socket, text)
            response = Forwarding::DownstreamResponse.text(503, text, nil)
            socket.write_nonblock(response.head + response.content, exception: false)
            socket.close_write
            return if linger(socket)
            socket.close
          rescue SystemCallError, IOError
            socket.close
          end

          def accept(server, text)
            @reserved&.close
            @reserved = nil
            socket = server.accept_nonblock(exception: false)
            add(socket, text) unless socket == :wait_readable
          rescue SystemCallError
            nil # no descriptor, or the client has closed it
          end

          def reserve
            @reserved ||= File.open(File::NULL)
          rescue SystemCallError
            nil
          end

          def size = @lock.synchronize { @sockets.size }

          def close
            @thread&.kill
            [*@sockets.keys, @reserved].compact.each(&:close)
          end

          private

          def linger(socket)
            @lock.synchronize do
              next false if @sockets.size >= MAX
              @sockets[socket] = now + LINGER
              @thread = Thread.new { drain } unless @thread&.alive?
              true
            end
          rescue ThreadError
            @lock.synchronize { @sockets.delete(socket) }
            false
          end

          def drain
            loop do
              ready, = IO.select(@lock.synchronize { @sockets.keys }, nil, nil, LINGER / 4)
              gone = ready.to_a.select { |socket| ended?(socket) }
              @lock.synchronize do
                gone |= @sockets.filter_map { |socket, limit| socket if now >= limit }
                gone.each { |socket| @sockets.delete(socket) }.each(&:close)
                return @thread = nil if @sockets.empty?
              end
            end
          end

          def ended?(socket)
            socket.read_nonblock(PIECE, exception: false).nil?
          rescue SystemCallError, IOError
            true
          end
        end
      end
    end
  end
end
