# frozen_string_literal: true

module Hikyaku
  module Broker
    class Server
      # One client's socket, as the reactor sees it.
      class Connection
        # @return [BasicSocket]
        attr_reader :socket
        # @return [Object] the engine's
        attr_reader :session
        # @return [NIO::Monitor]
        attr_reader :monitor
        # @return [Boolean] nothing more is to be read
        attr_accessor :ending
        # @return [Boolean] has as many unanswered requests as it may
        attr_accessor :full
        # @return [Float, nil] since when it takes no more bytes
        attr_accessor :blocked_since

        # For whoever asks the broker who is connected: of a Unix socket the process, else address and port.
        #
        # @param socket [BasicSocket]
        # @return [String]
        def self.address(socket)
          return socket.remote_address.inspect_sockaddr unless socket.is_a?(UNIXSocket)
          "unix, process #{socket.getsockopt(:SOCKET, :PEERCRED).data.unpack1("i")}"
        rescue SystemCallError, SocketError, NameError
          "unknown"
        end

        # @param socket [BasicSocket]
        # @param session [Object]
        # @param monitor [NIO::Monitor]
        def initialize(socket, session, monitor)
          @socket = socket
          @session = session
          @monitor = monitor
          @ending = @full = false
        end

        # @return [Boolean] bytes of it are wanted
        def reads? = !(ending || full)

        # @return [void]
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
