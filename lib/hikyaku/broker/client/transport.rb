# frozen_string_literal: true

require "socket"
require_relative "../../support/clock"
require_relative "errors"
require_relative "../wire"

module Hikyaku
  module Broker
    class Client
      # One socket: an output buffer that one thread writes at a time, and a reader of frames.
      #
      # Frames that are enqueued during a write share the next system call.
      class Transport
        include Support::Clock

        READ_BYTES = 256 * 1024
        # Seconds for connecting, and for the answer to HELLO.
        CONNECT_TIMEOUT = 10
        SOCKET_ERRORS = [SystemCallError, IOError, SocketError].freeze
        private_constant :READ_BYTES, :CONNECT_TIMEOUT, :SOCKET_ERRORS

        # The connection broke; the message says why.
        class Broken < StandardError
        end

        # Seconds, once the broker has chosen them; 0: none.
        attr_writer :heartbeat

        class << self
          def connect(address, lock:, max_frame:)
            new(dial(address), lock: lock, max_frame: max_frame)
          rescue *SOCKET_ERRORS => error
            raise Broken, reason(error)
          end

          def reason(error)
            error.is_a?(SystemCallError) ? error.class.new.message.downcase : error.message
          end

          private

          def dial(address)
            if address.unix?
              check_owner(address) if address.default?
              UNIXSocket.new(address.path)
            else
              Socket.tcp(address.host, address.port, connect_timeout: CONNECT_TIMEOUT).tap { |socket| socket.setsockopt(:TCP, :NODELAY, true) }
            end
          end

          # The default path is in a directory where every user may create a socket.
          def check_owner(address)
            owner = File.lstat(address.path).uid
            raise Broken, "the socket belongs to another user" unless [0, Process.euid].include?(owner)
          end
        end

        def initialize(socket, lock:, max_frame:)
          @socket = socket
          @lock = lock
          @reader = Wire::Reader.new(from: :broker, max_frame: max_frame)
          @buffer = "".b
          @writing = @closed = @write_closed = false
          @owner = Process.pid
          @wrote_at = now
        end

        # Called with the lock.
        def enqueue(frame)
          @buffer << frame unless @closed
        end

        def buffered_bytes = @buffer.bytesize

        def closed? = @closed

        # Called with the lock.
        #
        # @return [String, nil] what the caller has to {#write}; nil: nothing, or another thread is writing and writes the rest as well
        def take
          return if @writing || @closed || @buffer.empty? || @owner != Process.pid
          @writing = true
          bytes = @buffer
          @buffer = "".b
          bytes
        end

        def write(bytes)
          written = write_all(bytes)
        ensure
          @lock.synchronize { @writing = false }
          # A part of a frame may have been written.
          abort unless written
        end

        # Yields frames as they come, until the connection breaks.
        def each_frames
          loop do
            bytes = receive
            frames = []
            begin
              @reader.read(bytes) { |frame, _size| frames << frame }
            ensure
              yield frames unless frames.empty?
            end
          end
        end

        def writing? = @writing

        def busy? = @writing || !@buffer.empty?

        # @return [Float, nil] when a PING is due so that the broker hears something within the heartbeat
        def ping_at = (@wrote_at + @heartbeat / 2 if @heartbeat&.positive?)

        # Closes the writing half: the broker reads the rest, and closes.
        def close_write
          return if @write_closed
          @write_closed = true
          @socket.shutdown(:WR)
        rescue *SOCKET_ERRORS
          nil
        end

        # Breaks the connection, from any thread. The threads that read and write notice it; the reading one closes the socket.
        def abort
          @closed = true
          @socket.shutdown
        rescue *SOCKET_ERRORS
          nil
        end

        def close
          abort
          abandon
        end

        # Closes the file descriptor in a forked child: the parent goes on with the connection.
        def abandon
          @closed = true
          @socket.close
        rescue *SOCKET_ERRORS
          nil
        end

        private

        def write_all(bytes)
          until bytes.empty?
            count = @socket.write_nonblock(bytes, exception: false)
            if count == :wait_writable
              @socket.wait_writable
            else
              bytes = (count == bytes.bytesize) ? "" : bytes.byteslice(count, bytes.bytesize)
            end
          end
          @wrote_at = now
          true
        rescue *SOCKET_ERRORS
          false
        end

        def receive
          loop do
            case bytes = @socket.read_nonblock(READ_BYTES, exception: false)
            when :wait_readable then wait
            when nil then raise Broken, "the broker closed the connection"
            else return bytes
            end
          end
        rescue *SOCKET_ERRORS => error
          raise Broken, @closed ? "the connection was closed" : self.class.reason(error)
        end

        # The broker chooses the heartbeat in its answer to HELLO.
        def wait
          seconds = @heartbeat ? (@heartbeat * 2 if @heartbeat.positive?) : CONNECT_TIMEOUT
          return if @socket.wait_readable(seconds)
          raise Broken, @heartbeat ? "the broker was silent for two heartbeats" : "the broker did not answer HELLO within #{CONNECT_TIMEOUT} seconds"
        end
      end
    end
  end
end
