# frozen_string_literal: true

require "socket"
require_relative "errors"
require_relative "../wire"

module Hikyaku
  module Broker
    class Client
      # One connection: frames out, gathered from whoever has one and written by one of them at a time, and frames in.
      #
      # A write costs a system call; what comes meanwhile goes with the next one.
      class Session
        READ_BYTES = 256 * 1024
        # Seconds within which a connection is made and greeted.
        PATIENCE = 10
        # What a broken or impossible connection is known by.
        TROUBLE = [SystemCallError, IOError, SocketError].freeze
        private_constant :READ_BYTES

        # The connection is gone; the message says why.
        class Broken < StandardError
        end

        attr_reader :wrote_at
        attr_accessor :heartbeat

        def self.connect(address, lock:, max_frame:)
          new(dial(address), lock: lock, max_frame: max_frame)
        rescue *TROUBLE => error
          raise Broken, reason(error)
        end

        def self.dial(address)
          if address.unix?
            ours!(address) if address.usual?
            UNIXSocket.new(address.path)
          else
            Socket.tcp(address.host, address.port, connect_timeout: PATIENCE).tap { |socket| socket.setsockopt(:TCP, :NODELAY, true) }
          end
        end

        # In a folder where everybody may make files, somebody else's socket is not the broker's.
        def self.ours!(address)
          owner = File.lstat(address.path).uid
          raise Broken, "the socket belongs to another user" unless [0, Process.euid].include?(owner)
        end

        def self.reason(error)
          error.is_a?(SystemCallError) ? error.class.new.message.downcase : error.message
        end
        private_class_method :dial, :ours!

        def initialize(socket, lock:, max_frame:)
          @socket = socket
          @lock = lock
          @reader = Wire::Reader.new(from: :broker, max_frame: max_frame)
          @gathered = "".b
          @writing = @severed = @finished = false
          @owner = Process.pid
          @wrote_at = now
        end

        # Adds to what is to be written. Called with the lock.
        def gather(bytes)
          @gathered << bytes unless @severed
        end

        def gathered_bytes = @gathered.bytesize

        def severed? = @severed

        # Writes what was gathered, unless somebody does it already, who then goes on with this.
        def flush(&before)
          while (bytes = claim(&before))
            whole = false
            begin
              whole = write(bytes)
            ensure
              @lock.synchronize { @writing = false }
              # Half a frame may have been written.
              sever unless whole
            end
          end
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

        def busy? = @writing || !@gathered.empty?

        # Says nothing more; the broker reads what there is, and closes.
        def finish
          return if @finished
          @finished = true
          @socket.shutdown(:WR)
        rescue *TROUBLE
          nil
        end

        # Ends it, from any thread: whoever reads or writes finds the end.
        def sever
          @severed = true
          @socket.shutdown
        rescue *TROUBLE
          nil
        end

        # Lets go of the socket; the thread that reads does it.
        def close
          sever
          abandon
        end

        # Lets go without a word on a connection that is another process's.
        def abandon
          @severed = true
          @socket.close
        rescue *TROUBLE
          nil
        end

        private

        def claim
          @lock.synchronize do
            return if @writing || @severed || @owner != Process.pid
            yield if block_given?
            return if @gathered.empty?
            @writing = true
            bytes = @gathered
            @gathered = "".b
            bytes
          end
        end

        def write(bytes)
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
        rescue *TROUBLE
          false
        end

        # Twice the heartbeat without a byte is too long.
        def receive
          loop do
            case bytes = @socket.read_nonblock(READ_BYTES, exception: false)
            when :wait_readable then wait
            when nil then raise Broken, "the broker closed the connection"
            else return bytes
            end
          end
        rescue *TROUBLE => error
          raise Broken, @severed ? "the connection was closed" : self.class.reason(error)
        end

        # Until the broker has said which heartbeat it wants, it has so long to say anything.
        def wait
          seconds = @heartbeat ? (@heartbeat * 2 if @heartbeat.positive?) : PATIENCE
          return if @socket.wait_readable(seconds)
          raise Broken, @heartbeat ? "the broker was silent for two heartbeats" : "the broker did not answer HELLO within #{PATIENCE} seconds"
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
