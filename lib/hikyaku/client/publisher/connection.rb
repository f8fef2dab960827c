# frozen_string_literal: true

require "net/http"
require "socket"
require_relative "../../support/clock"

module Hikyaku
  class Publisher
    # One connection to a hub: Net::HTTP, and what it lacks: Unix sockets, a look at whether the hub has closed, and a
    # way to stop a reader from another thread.
    class Connection < Net::HTTP
      include Support::Clock

      # How often a Unix socket is tried whose queue is full: there is nothing that one could wait for.
      QUEUE_PAUSE = 0.01
      private_constant :QUEUE_PAUSE

      attr_accessor :unix_path
      attr_accessor :idle_since
      attr_accessor :kept_seconds

      def open? = started? && !@socket.nil? && !@socket.closed?

      # Whether another request may be sent: the hub has neither closed nor said anything unasked.
      def usable?
        return false unless open?
        @socket.io.read_nonblock(1, exception: false) == :wait_readable
      rescue SystemCallError, IOError, OpenSSL::SSL::SSLError
        false
      end

      # Ends reading and writing, whichever thread is busy with it: it finds the end of the stream. The socket itself
      # is closed by its owner, because TLS cannot be closed under a reader's feet.
      def interrupt
        @socket&.io&.to_io&.shutdown
      rescue SystemCallError, IOError
        nil
      end

      # Closes; harmless when repeated.
      def discard
        finish if started?
      rescue SystemCallError, IOError, OpenSSL::SSL::SSLError
        nil
      end

      private

      # Called by Net::HTTP whenever it needs a socket.
      def connect
        return super unless @unix_path
        @socket = Net::BufferedIO.new(connect_unix, read_timeout: @read_timeout, write_timeout: @write_timeout,
          continue_timeout: @continue_timeout, debug_output: @debug_output)
        @last_communicated = nil
        on_connect
      end

      def connect_unix
        socket = Socket.new(:UNIX, :STREAM)
        address = Socket.sockaddr_un(@unix_path)
        deadline = now + @open_timeout
        begin
          socket.connect_nonblock(address)
        rescue IO::WaitWritable, Errno::EAGAIN
          raise Net::OpenTimeout, "the queue of #{@unix_path} stayed full" if now > deadline
          sleep QUEUE_PAUSE
          retry
        rescue Errno::EISCONN
          # Some systems say so when asked again.
        end
        socket
      rescue
        socket&.close
        raise
      end
    end
  end
end
