# frozen_string_literal: true

require "puma"
require "puma/server"
require "json"
require_relative "../../support/clock"
require_relative "../date_header"

module Hikyaku
  class Server
    class Http < Puma::Server
      # Accepts connections as long as files are left: a few are kept for the process itself. When there is no room for another
      # connection, one that has not sent a whole head of a request for a while, or has not got on with its body, is closed for it; if there is none, the new one is told 429.
      class ConnectionLimit
        include Support::Clock

        # Seconds between two tries when there is no file at all, and between two lines of the log.
        PAUSE = 0.1
        SILENCE = 10
        # Seconds without a whole head, or with a body that does not get on, after which a connection may be closed for another.
        QUIET = 1
        # Connections that were told 429 stay open for so many seconds, since closing one at once may take the answer away (RFC 9112,
        # section 9.6); but never more than so many.
        LINGER = {seconds: 1, connections: 16}.freeze
        FULL = JSON.generate(type: "about:blank", title: "Too Many Requests", status: 429, detail: "the hub holds as many connections as it may")
        private_constant :PAUSE, :SILENCE, :QUIET, :LINGER, :FULL

        # What the reactor takes for a client that has gone already, and asks on its own thread: then it closes another.
        Eviction = Struct.new(:reactor, :client) do
          def io_ok?
            if reactor.instance_variable_get(:@timeouts).include?(client)
              client.expire
              reactor.send(:wakeup!, client)
            end
            false
          end
        end
        private_constant :Eviction

        # For a socket that listens.
        module Watched
          attr_writer :connection_limit

          def accept_nonblock(*) = @connection_limit.admit { super }
        end
        private_constant :Watched

        def initialize(files, logger:, &reactor)
          @files = files
          @logger = logger
          @reactor = reactor
          @refused = []
        end

        def watch(socket)
          socket.extend(Watched).connection_limit = self
        end

        # The system gives the lowest number that is free: it says how many files are open.
        def admit
          forget_refused unless @refused.empty?
          connection = yield
          return connection if connection.fileno < @files || evict
          refuse(connection)
          raise IO::EAGAINWaitReadable, "there is no room for a connection"
        rescue Errno::EMFILE, Errno::ENFILE
          evict
          complain
          sleep PAUSE
          raise IO::EAGAINWaitReadable, "no file is left for a connection"
        end

        private

        def evict
          reactor = @reactor.call or return false
          since = now - QUIET
          quiet = reactor.instance_variable_get(:@timeouts).find { |client| client.quiet_since?(since) } or return false
          quiet.chosen
          reactor.add(Eviction.new(reactor, quiet))
        end

        def refuse(connection)
          connection.write_nonblock("HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/problem+json\r\ncache-control: no-store\r\n" \
            "retry-after: #{rand(1..5)}\r\ndate: #{DateHeader.now}\r\nconnection: close\r\ncontent-length: #{FULL.bytesize}\r\n\r\n#{FULL}", exception: false)
          connection.close_write
          @refused << [now, connection]
        rescue SystemCallError, IOError
          connection.close
        end

        def forget_refused
          before = now - LINGER[:seconds]
          @refused.shift.last.close while @refused.any? && (@refused.size >= LINGER[:connections] || @refused.first.first <= before)
        end

        def complain
          return if @complained && now - @complained < SILENCE
          @complained = now
          @logger.error("no file is left for another connection; raise the limit of the process (ulimit -n)")
        end
      end
      private_constant :ConnectionLimit
    end
  end
end
