# frozen_string_literal: true

require "io/wait"
require "socket"
require_relative "request"

module Misbehaving
  # One connection, from the server's side. It reads as much as there is at once, so that what came together is known.
  class Connection
    PIECE = 65_536
    # How long what the client still sends is read after the last answer: were it not, the client would get a reset, and might lose the answer.
    LINGER = 0.5
    RESET = [1, 0].pack("ii").freeze
    private_constant :PIECE, :LINGER, :RESET

    # @return [Integer] from 1
    attr_reader :number
    # @return [Integer] requests that were read
    attr_reader :count

    def initialize(socket, number, server)
      @socket = socket
      @number = number
      @server = server
      @count = 0
      @bytes = String.new(encoding: Encoding::BINARY)
    end

    # @return [Request, nil] nil when no more come
    def read
      return if @closed
      until (request = take)
        @bytes << @socket.readpartial(PIECE)
      end
      request
    rescue EOFError, Errno::ECONNRESET
      nil
    end

    # @param seconds [Numeric]
    # @return [Boolean] whether there is more to read, or the end, before the time is up
    def more?(seconds) = !@bytes.empty? || !@socket.wait_readable(seconds).nil?

    # Forgets what was read together with the last request: it comes into no log.
    def discard = @bytes.clear

    # @param bytes [String]
    def write(bytes)
      @socket.write(bytes)
      @socket.flush
    end

    # Says no more, and reads, and forgets, what the client still says. Requests among it are in the log.
    def close
      return if @closed
      nil while take
      @socket.close_write
      deadline = now + LINGER
      while (left = deadline - now) > 0 && more?(left)
        break unless read
      end
      @closed = true
    end

    # The client gets ECONNRESET in place of an end.
    def reset
      @closed = true
      @socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, RESET)
      @socket.close
    end

    private

    def take
      request = Request.take(@bytes) or return
      @count += 1
      @server.record([@number, request.method, request.target, request.headers])
      request
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
