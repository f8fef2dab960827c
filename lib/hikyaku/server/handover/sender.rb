# frozen_string_literal: true

require "socket"
require_relative "message"

module Hikyaku
  class Server
    module Handover
      # The side that gives connections away. Thread-safe; a forked child opens a way of its own.
      class Sender
        # What a way that has broken says.
        GONE = [Errno::EPIPE, Errno::ECONNRESET, Errno::ECONNREFUSED, Errno::ENOTCONN, Errno::ENOENT].freeze
        private_constant :GONE

        def initialize(path, seconds: 2)
          @path = path
          @seconds = seconds
          @mutex = Mutex.new
        end

        # Gives a connection away. The caller's own copy of the descriptor is the caller's to close, and no more than that: to
        # shut the connection down would end it for the receiver, too.
        def call(socket, request)
          return false if request.bytesize > MAX_REQUEST_BYTES
          rights = Socket::AncillaryData.unix_rights(socket)
          @mutex.synchronize { send(request, rights) }
        end

        def close = @mutex.synchronize { forget }

        def inspect = "#<#{self.class.name} #{@path}>"

        private

        # A way that was open may lead to a process that has ended; then there is perhaps another by now.
        def send(request, rights)
          opened = way?
          while way.sendmsg_nonblock(request, Socket::MSG_NOSIGNAL, nil, rights, exception: false) == :wait_writable
            return false unless way.wait_writable(@seconds)
          end
          true
        rescue *GONE
          forget
          retry if opened
          false
        rescue SystemCallError
          false # no room for it: of connections on their way, or of those who want to give some
        end

        def way? = !@way.nil? && @pid == Process.pid

        def way
          return @way if way?
          @pid = Process.pid
          socket = Socket.new(:UNIX, KIND)
          socket.setsockopt(:SOCKET, :SNDBUF, 2 * MAX_REQUEST_BYTES)
          socket.connect(Socket.sockaddr_un(@path))
          @way = socket
        rescue SystemCallError
          socket&.close
          raise
        end

        # A child's copy of its parent's way is closed by closing it; that says nothing on it.
        def forget
          @way&.close
          @way = nil
        end
      end
    end
  end
end
