# frozen_string_literal: true

require "socket"
require_relative "../error"

module Hikyaku
  class Server
    # The hub cannot listen where it should; the message says why.
    class CannotListen < StandardError
      include Error
    end

    # The sockets of one address: one for a Unix socket, one for each address family of a host.
    class Listener
      # For the user and the group of the process; who else may publish is for the operator to say with a group.
      UNIX_MODE = 0o660
      PORT_ATTEMPTS = 10
      ABSENT = [Errno::EADDRNOTAVAIL, Errno::EAFNOSUPPORT, Errno::EPROTONOSUPPORT].freeze
      private_constant :UNIX_MODE, :PORT_ATTEMPTS, :ABSENT

      attr_reader :address, :sockets

      def initialize(address, mode: UNIX_MODE, flag: "--listen", listening: true)
        @address = address
        @mode = mode
        @flag = flag
        @sockets = []
        reporting { bind_tcp } unless address.unix?
        listen if listening
      end

      # Takes connections from now on.
      def listen
        reporting { address.unix? ? listen_unix : @sockets.each { |socket| socket.listen(Socket::SOMAXCONN) } }
        self
      end

      # Closes the sockets, and takes the file of a Unix socket away unless another process has put its own there.
      def close
        # First the file: to close a socket waits for whoever is using it.
        take_away
        @sockets.each { |socket| socket.close unless socket.closed? }
      rescue SystemCallError
        nil
      end

      private

      def take_away
        File.unlink(address.path) if @identity && identity == @identity
        @identity = nil
      rescue SystemCallError
        nil
      end

      def reporting
        yield
      rescue SystemCallError, SocketError => error
        close
        raise CannotListen, "cannot listen on #{address}: #{reason(error)}"
      end

      def bind_tcp
        port = address.port
        (port.zero? ? PORT_ATTEMPTS : 1).times do |attempt|
          # A free port of one family may be taken in the other.
          break bind_all(port)
        rescue Errno::EADDRINUSE
          raise if port > 0 || attempt == PORT_ATTEMPTS - 1
          close_all
        end
        @address = address.with_port(@sockets.first.local_address.ip_port)
      end

      # Every family that the machine has; a port that is taken in one of them is an error, not half a success.
      def bind_all(port)
        missing = nil
        addresses.each do |info|
          socket = bind(info, port)
          port = socket.local_address.ip_port
          @sockets << socket
        rescue *ABSENT => error
          missing = error
        end
        raise missing if @sockets.empty?
      end

      def addresses
        Addrinfo.getaddrinfo(address.everywhere? ? nil : address.host, 0, nil, :STREAM, nil, Socket::AI_PASSIVE).uniq(&:ip_address)
      end

      def bind(info, port)
        socket = Socket.new(info.pfamily, :STREAM)
        socket.ipv6only! if info.ipv6?
        socket.setsockopt(:SOCKET, :REUSEADDR, true)
        # Inherited by the connections: an event must not wait for the next.
        socket.setsockopt(:TCP, :NODELAY, true)
        socket.bind(Addrinfo.tcp(info.ip_address, port))
        # Puma accepts from a TCPServer.
        server = TCPServer.for_fd(socket.fileno)
        socket.autoclose = false
        server
      rescue SystemCallError
        socket&.close
        raise
      end

      def close_all
        @sockets.each(&:close)
        @sockets.clear
      end

      def listen_unix
        evict
        mask = File.umask(0o777 & ~@mode)
        server = UNIXServer.new(address.path)
        server.listen(Socket::SOMAXCONN)
        @identity = identity
        @sockets << server
      ensure
        File.umask(mask) if mask
      end

      # What a process that died has left behind.
      def evict
        return unless File.exist?(address.path) || File.symlink?(address.path)
        raise CannotListen, "cannot listen on #{address}: there is a file of this name that is no socket" unless File.socket?(address.path)
        UNIXSocket.new(address.path).close
        raise Errno::EADDRINUSE
      rescue Errno::ECONNREFUSED, Errno::ENOENT
        File.unlink(address.path) if File.socket?(address.path)
      end

      def identity
        stat = File.lstat(address.path)
        [stat.dev, stat.ino]
      rescue SystemCallError
        nil
      end

      def reason(error)
        case error
        when Errno::EADDRINUSE then "another process listens there; stop it or choose another with #{@flag}"
        when Errno::EACCES, Errno::EPERM then "permission denied#{"; ports below 1024 need a privilege" if address.port.to_i.between?(1, 1023)}"
        when Errno::EADDRNOTAVAIL then "this machine does not have that address"
        when SocketError then "the host name is not known"
        when Errno::ENOENT then "there is no such folder"
        else error.class.new.message.downcase
        end
      end
    end
  end
end
