# frozen_string_literal: true

require_relative "../../support/clock"
require_relative "reply"

module Hikyaku
  module HTTP
    class Proxy
      # Connections for which there is no place: each is told so, and let go. Closed at once, what the browser has said would be unread, and the connection
      # reset, the answer with it (RFC 9112, section 9.6): so it is listened to for a moment.
      class TurnedAway
        include Support::Clock

        # So many are told at a time; the others are closed as they are.
        MOST = 16
        # Seconds.
        LINGER = 1.0
        PIECE = 65_536
        private_constant :MOST, :LINGER, :PIECE

        def initialize
          @lock = Mutex.new
          @sockets = {}.compare_by_identity
          @thread = nil
          keep_place
        end

        def add(socket, text)
          reply, body = Reply.plain(503, text, nil)
          socket.write_nonblock(reply.head + body, exception: false)
          socket.close_write
          return if linger(socket)
          socket.close
        rescue SystemCallError, IOError
          socket.close
        end

        # There are no descriptors left but the one that was kept for this.
        def take(server, text)
          @place&.close
          @place = nil
          socket = server.accept_nonblock(exception: false)
          add(socket, text) unless socket == :wait_readable
        rescue SystemCallError
          nil # nor that, or it has gone
        end

        # Before the next comes.
        def keep_place
          @place ||= File.open(File::NULL)
        rescue SystemCallError
          nil
        end

        def size = @lock.synchronize { @sockets.size }

        def close
          @thread&.kill
          [*@sockets.keys, @place].compact.each(&:close)
        end

        private

        def linger(socket)
          @lock.synchronize do
            next false if @sockets.size >= MOST
            @sockets[socket] = now + LINGER
            @thread = Thread.new { hear_out } unless @thread&.alive?
            true
          end
        rescue ThreadError
          @lock.synchronize { @sockets.delete(socket) }
          false
        end

        def hear_out
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
