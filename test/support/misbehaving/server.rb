# frozen_string_literal: true

require "socket"
require_relative "connection"

module Misbehaving
  # Listens, gives each connection to the way of misbehaving in a thread of its own, and remembers every request.
  class Server
    # @return [Integer]
    attr_reader :port

    # @param way [WellBehaved]
    def initialize(way)
      @way = way
      @lock = Mutex.new
      @log = []
      @count = 0
      @threads = []
      @listener = TCPServer.new("127.0.0.1", 0)
      @port = @listener.addr[1]
      @acceptor = Thread.new { accept }
    end

    # @param path [String]
    # @return [String]
    def url(path = "/") = "http://127.0.0.1:#{@port}#{path}"

    # @return [Array<Array(Integer, String, String, Hash)>] of each request the number of the connection, from 1, its method, its target as
    #   it came, and its fields with names in lower case; in the order in which they were received
    def log = @lock.synchronize { @log.dup }

    # @return [Integer] that were accepted
    def connections = @lock.synchronize { @count }

    # Ends all, and raises what went wrong in a way of misbehaving, other than that the client is gone.
    def close
      @listener.close
      @acceptor.join
      @threads.each { |thread| thread.kill unless thread.join(0) }
      @threads.each(&:join)
    end

    # @param entry [Array]
    # @api private
    def record(entry) = @lock.synchronize { @log << entry.freeze }

    private

    def accept
      loop do
        socket = @listener.accept
        number = @lock.synchronize { @count += 1 }
        @threads << Thread.new { serve(socket, number) }
      end
    rescue IOError, SystemCallError
      nil
    end

    def serve(socket, number)
      Thread.current.report_on_exception = false
      socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
      @way.serve(Connection.new(socket, number, self))
    rescue IOError, SystemCallError
      nil
    ensure
      socket.close
    end
  end
end
