# frozen_string_literal: true

require "socket"

module Hikyaku
  class Server
    # Passes a client's connection, with the request that was read from it, to the process that holds the hub. The client
    # notices nothing; the process that accepted it may end.
    #
    #     worker:  Sender#call(socket, request) ── descriptor and bytes over a Unix socket ──► Receiver ──► the hub's loop
    #
    # One message for each connection: the request's bytes, with the descriptor beside them (SCM_RIGHTS). Only processes of
    # the same user are listened to.
    module Handover
      # A socket that keeps messages apart, so that descriptors never come without their bytes.
      KIND = :SEQPACKET
      # Bytes of a request that may be passed; a larger one does not fit into a message.
      MAX_REQUEST_BYTES = 131_072

      # The side that takes connections: a Unix socket, and a thread for each process that gives.
      class Receiver
        # For this user alone.
        MODE = 0o600
        BACKLOG = 64
        # Seconds before it tries again when no file is left.
        PAUSE = 0.1
        private_constant :MODE, :BACKLOG, :PAUSE

        def initialize(path, logger:, &take)
          @path = path
          @logger = logger
          @take = take
          @ways = []
          @server = listen
          @thread = Thread.new { accept }
          @thread.name = "hikyaku-handover"
        end

        # Listens no more. Connections that were taken stay.
        def close
          @server.close
          File.unlink(@path)
        rescue IOError, SystemCallError
          nil
        ensure
          # Who gives one now must know at once that nobody takes it.
          [@thread, *@ways].each(&:kill).each(&:join)
        end

        private

        def listen
          File.unlink(@path) if File.socket?(@path) && !answers?
          server = Socket.new(:UNIX, KIND)
          previous = File.umask(0o777 & ~MODE)
          begin
            server.bind(Socket.sockaddr_un(@path))
          ensure
            File.umask(previous)
          end
          server.listen(BACKLOG)
          server
        rescue SystemCallError
          server&.close
          raise
        end

        def answers?
          Socket.new(:UNIX, KIND).tap { |socket| socket.connect(Socket.sockaddr_un(@path)) }.close
          true
        rescue SystemCallError
          false
        end

        def accept
          until @server.closed?
            begin
              way, = @server.accept
              @ways.reject! { |thread| !thread.alive? }
              @ways << Thread.new(way) { |its_own| receive(its_own) }
            rescue SystemCallError => error
              @logger.error("handover: #{error.message}")
              sleep PAUSE
            end
          end
        rescue IOError
          nil # it was closed
        end

        def receive(way)
          return unless own?(way)
          while (message = read(way))
            request, socket = message
            take(socket, request) if socket
          end
        rescue IOError, SystemCallError
          nil
        ensure
          way.close
        end

        # Whose process it is that gives.
        def own?(way)
          user, = way.getpeereid
          return true if user == Process.euid || user.zero?
          @logger.warn("handover: a process of user #{user} was turned away")
          false
        end

        def read(way)
          request, _, flags, *controls = way.recvmsg(MAX_REQUEST_BYTES, 0, nil, scm_rights: true)
          descriptors = controls.flat_map { |control| control.cmsg_is?(:SOCKET, :RIGHTS) ? control.unix_rights : [] }
          return if request.empty? && descriptors.empty?
          return [request, Socket.for_fd(descriptors.first.tap { |io| io.autoclose = false }.fileno)] if descriptors.one? && flags & Socket::MSG_TRUNC == 0
          descriptors.each(&:close)
          @logger.warn("handover: a message came without its connection; it is dropped")
          [request, nil]
        end

        def take(socket, request)
          @take.call(socket, request)
        rescue => error
          socket.close
          @logger.error("handover: #{error.class}: #{error.message}")
        end
      end

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
