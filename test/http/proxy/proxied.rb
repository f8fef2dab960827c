# frozen_string_literal: true

require "socket"
require "hikyaku/http/parser"
require "hikyaku/http/proxy"
require "support/misbehaving"

# What tests of the proxy over sockets share: a proxy, servers behind it, and what a browser says.
module Proxied
  LOOPBACK = ["127.0.0.0/8"].freeze
  private_constant :LOOPBACK

  # A server that keeps every byte that it is sent. After each piece a block is given all that came on that connection, and gives what to answer, if
  # anything.
  class Origin
    # @return [Integer]
    attr_reader :port

    def initialize(&answer)
      @answer = answer
      @lock = Mutex.new
      @received = []
      @listener = TCPServer.new("127.0.0.1", 0)
      @port = @listener.addr[1]
      @threads = [Thread.new { accept }]
    end

    # @return [Array<String>] bytes by connection
    def received = @lock.synchronize { @received.map(&:dup) }

    def close
      @listener.close
      @threads.each { |thread| thread.join(0.1) || thread.kill }
    end

    private

    def accept
      loop do
        socket = @listener.accept
        bytes = "".b
        @lock.synchronize { @received << bytes }
        @threads << Thread.new { serve(socket, bytes) }
      end
    rescue IOError
      nil
    end

    def serve(socket, bytes)
      loop do
        piece = socket.readpartial(65_536)
        @lock.synchronize { bytes << piece }
        answer = @answer.call(bytes)
        socket.write(answer) if answer
      end
    rescue IOError, SystemCallError
      nil
    ensure
      socket.close
    end
  end

  private

  def with(way, **options)
    Misbehaving.run(way) { |server| run_proxy(**options) { |proxy| yield server, proxy } }
  end

  # @yieldparam origin [Origin]
  # @yieldparam proxy [Hikyaku::HTTP::Proxy]
  def with_origin(answer)
    origin = Origin.new { |bytes| answer.respond_to?(:call) ? answer.call(bytes) : (answer if bytes.end_with?("\r\n\r\n")) }
    run_proxy { |proxy| yield origin, proxy }
  ensure
    origin&.close
  end

  def run_proxy(**options)
    reports = []
    proxy = Hikyaku::HTTP::Proxy.new(memory: nil, allow: LOOPBACK, on_error: ->(text) { reports << text }, **options)
    thread = Thread.new { proxy.run }
    yield proxy
  ensure
    proxy&.stop
    thread&.join
    @sockets&.each(&:close)
    assert_empty reports || []
  end

  def host(server) = "127.0.0.1:#{server.port}"

  def connect(proxy) = TCPSocket.new("127.0.0.1", proxy.port).tap { |socket| (@sockets ||= []) << socket }

  def get(proxy, server, target, *fields)
    ask(connect(proxy), ["GET http://#{host(server)}#{target} HTTP/1.1", "Host: #{host(server)}", *fields].map { |line| "#{line}\r\n".b }.join + "\r\n")
  end

  def wait_until
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
    sleep 0.01 until yield || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    assert yield
  end

  # @return [Array(Integer, Hash, String)]
  def ask(socket, request)
    socket.write(request)
    parser = Hikyaku::HTTP::Parser.new(:response)
    parser.request_method = request[/\A\w+/]
    head, body = nil, +""
    loop do
      while (part = parser.next)
        return [head.status, head.headers.to_h { |name, value| [name.downcase, value] }, body] if part == :end
        part.is_a?(String) ? body << part : head = part
      end
      bytes = socket.readpartial(65_536)
      parser << bytes
    rescue EOFError
      parser.close
      part = parser.next
      return [head.status, head.headers.to_h { |name, value| [name.downcase, value] }, body] if part == :end
      raise
    end
  end
end
