# frozen_string_literal: true

require "socket"

# An empty page at every path of an origin that is not the hub's.
class TestSite
  PAGE = "<!doctype html><title>site</title>"
  private_constant :PAGE

  attr_reader :port

  def initialize
    @listener = TCPServer.new("127.0.0.1", 0)
    @port = @listener.addr[1]
    @thread = Thread.new { accept }
  end

  # @return [String] as browsers write it in Origin
  def origin = "http://127.0.0.1:#{port}"

  def close
    @listener.close
    @thread.join(1) || @thread.kill
  end

  private

  def accept
    loop { Thread.new(@listener.accept) { |socket| answer(socket) } }
  rescue IOError, SystemCallError
    nil
  end

  def answer(socket)
    nil until ["\r\n", nil].include?(socket.gets)
    socket.write("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: #{PAGE.bytesize}\r\nconnection: close\r\n\r\n#{PAGE}")
  rescue IOError, SystemCallError
    nil
  ensure
    socket.close
  end
end
