# frozen_string_literal: true

require "socket"
require_relative "../../support/clock"
require_relative "../../http/parser"
require_relative "../../support/hop_by_hop"
require_relative "hub_unavailable"
require_relative "hub_connection"

module Hikyaku
  class Server
    class Relay
      # An answer of the hub's that is given on as it comes, until either side ends it: for servers that do not give their socket away,
      # and for a hub that takes none over. A raw socket is carried by a thread of its own, so that none of the server's is held; for
      # anything else it holds what the server gives a response, a thread or a fibre.
      class Stream
        include Support::Clock

        CHUNK = 65_536
        # For the head of the answer.
        SECONDS = 30
        EVENTS = %r{\A(?:text/event-stream|application/vnd\.msgpack)(?![^;\s])}i
        private_constant :CHUNK, :SECONDS, :EVENTS

        @open = {}
        @lock = Mutex.new

        class << self
          # Ends all that are open in this process: a server that stops would wait for them.
          def close_all = @lock.synchronize { @open.keys }.each(&:interrupt)

          def enter(stream) = @lock.synchronize { @open[stream] = true }

          def leave(stream) = @lock.synchronize { @open.delete(stream) }
        end

        def initialize(path, bytes)
          @socket = UNIXSocket.new(path)
          @socket.write(bytes)
          @parser = HTTP::Parser.new(:response)
          @head = head
        rescue SystemCallError, IOError, HTTP::Parser::Malformed
          @socket&.close
          raise HubUnavailable
        end

        def response(env)
          headers = @head.headers.group_by { |name, _| name.downcase }.except(*Support::HopByHop::FIELDS)
            .transform_values { |fields| fields.map { |_, value| value.dup.force_encoding(Encoding::UTF_8) }.then { |values| values.one? ? values.first : values } }
          # Puma forgets a socket after the call; other servers close theirs.
          @owned = env.key?("puma.socket")
          return [@head.status, headers, [rest]] unless @head.status == 200 && EVENTS.match?(headers["content-type"].to_s)
          headers["connection"] = "close" if env["SERVER_PROTOCOL"].to_s.start_with?("HTTP/1")
          [@head.status, headers, self]
        end

        # Gives on what comes, until either side has ended; from a raw socket it returns at once.
        def call(stream)
          @called = true
          return carry(stream) unless stream.is_a?(BasicSocket)
          socket = @owned ? stream : stream.dup
          Thread.new { carry(socket) }.name = "hikyaku-stream"
        end

        # The server is done with the response. The stream is not, once it was called.
        def close
          @socket.close unless @called
        end

        def interrupt
          @socket.shutdown
        rescue IOError, SystemCallError
          nil
        end

        private

        def carry(stream)
          Stream.enter(self)
          while (part = body)
            stream.write(part)
            stream.flush if stream.respond_to?(:flush)
          end
        rescue IOError, SystemCallError, HTTP::Parser::Malformed
          nil # the client is gone, or the hub
        ensure
          Stream.leave(self)
          @socket.close
          finish(stream)
        end

        # The server may keep a descriptor of its own, and the client is to see the end all the same.
        def finish(stream)
          stream.shutdown if stream.is_a?(BasicSocket)
        rescue IOError, SystemCallError
          nil
        ensure
          stream.close if stream.respond_to?(:close)
        end

        def head
          deadline = now + SECONDS
          until (head = @parser.next).is_a?(HTTP::Parser::Response) && !head.interim?
            next if head
            wait = deadline - now
            raise IOError, "the hub does not answer" unless wait.positive? && @socket.wait_readable(wait)
            @parser << @socket.readpartial(CHUNK)
          end
          head
        end

        def body
          loop do
            part = @parser.next
            return (part == :end) ? nil : part if part
            read
          end
        end

        def read
          @parser << @socket.readpartial(CHUNK)
        rescue EOFError
          @parser.close
        end

        def rest
          whole = +"".b
          while (part = body)
            whole << part
          end
          whole
        ensure
          @socket.close
        end
      end
    end
  end
end
