# frozen_string_literal: true

module Hikyaku
  module Broker
    class Server
      # One client's socket, as the reactor sees it.
      class Connection
        attr_reader :socket
        attr_reader :session
        attr_reader :monitor
        attr_accessor :ending
        attr_accessor :full
        attr_accessor :blocked_since

        # For whoever asks the broker who is connected: of a Unix socket the process, else address and port.
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
        end

        def reads? = !(ending || full)

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
