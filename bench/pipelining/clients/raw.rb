# frozen_string_literal: true

# A bare pipeline, to see what its parts do: reads the HTML, then asks for all images on the same connection, with request heads
# of `head=BYTES` and at most `unanswered=N` requests under way (0: all are written at once; 1: one after another).

require "socket"
require_relative "visit"

# One connection.
class Pipeline
  PAD = "X:"

  def initialize(uri, head:, unanswered:)
    @host = "#{uri.host}:#{uri.port}"
    @head = head
    @most = unanswered
    @socket = TCPSocket.new(uri.host, uri.port)
    @socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
  end

  # @param paths [Array<String>]
  # @return [Array<String>] bodies
  def get(paths)
    return all_at_once(paths) if @most.zero?
    waiting = paths.dup
    write(waiting.shift(@most))
    paths.map do
      body = read
      write(waiting.shift(1))
      body
    end
  end

  def close = @socket.close

  private

  # From a thread: who only writes may wait for who only writes.
  def all_at_once(paths)
    writing = Thread.new { write(paths) }
    paths.map { read }.tap { writing.join }
  end

  def write(paths)
    @socket.write(paths.map { |path| request(path) }.join) unless paths.empty?
  end

  # Of exactly so many bytes, if that is enough.
  def request(path)
    text = "GET #{path} HTTP/1.1\r\nHost: #{@host}\r\n"
    left = @head - text.bytesize - 2
    least = PAD.bytesize + 2
    text << PAD << "x" * (left - least) << "\r\n" if left >= least
    text << "\r\n"
  end

  def read
    head = @socket.gets("\r\n\r\n") or abort("raw: the server has closed the connection")
    abort("raw: #{head.lines.first}") unless head.start_with?("HTTP/1.1 200 ")
    @socket.read(Integer(head[/^content-length: (\d+)/i, 1]))
  end
end

Visit.run do |visit|
  pipeline = Pipeline.new(visit.uri, head: Integer(visit.options.fetch("head", "60")), unanswered: Integer(visit.options.fetch("unanswered", "0")))
  html, = pipeline.get([visit.uri.path])
  visit.got(html, pipeline.get(visit.paths(html)))
  visit.connections = 1
  pipeline.close
end
