# frozen_string_literal: true

require "socket"

module Hikyaku
  module Broker
    class Server
      # The socket of one client, as a {Reactor} has it.
      class Peer
        attr_reader :socket, :session, :monitor
        # The engine reads no more from it; the engine has as many unanswered requests of it as it may; since when a write would block.
        attr_accessor :ending, :full, :blocked_since

        # The process of a Unix socket, or address and port: `hikyaku sessions` shows them.
        def self.address(socket)
          return socket.remote_address.inspect_sockaddr unless socket.is_a?(UNIXSocket)
          "unix, process #{socket.getsockopt(:SOCKET, :PEERCRED).data.unpack1("i")}"
        rescue SystemCallError, SocketError, NameError
          "unknown"
        end

        def initialize(socket, session, monitor)
          @socket = socket
          @session = session
          @monitor = monitor
          @ending = @full = false
          monitor.value = self
        end

        def reads? = !(ending || full)

        # nio4r cannot watch for nothing: a peer that may neither send nor has anything to receive is watched when that changes.
        def watch
          interests = (@blocked_since ? :rw : :r) if reads?
          interests ||= :w if @blocked_since
          @monitor.interests = interests unless @monitor.interests == interests
        end

        def close
          @monitor.close
          @socket.close
        rescue IOError, SystemCallError
          nil
        end
      end
    end
  end
end
