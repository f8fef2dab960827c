# frozen_string_literal: true

require "socket"

# The least of a server, in a thread of the client: it answers what it is asked, in order, and keeps the connection.
class Rehearsal
  # @param sheet [Bench::Sheet] the page that it has
  # @yieldparam url [String] of it
  def self.run(sheet)
    server = new(sheet)
    yield server.url
  ensure
    server&.close
  end

  def initialize(sheet)
    @sheet = sheet
    @bodies = sheet.images.each_with_index.to_h { |path, number| [path, Bench::Image.bytes(sheet.size, number)] }.merge(sheet.path => sheet.html)
    @listener = TCPServer.new("127.0.0.1", 0)
    @accepting = Thread.new { loop { Thread.new(@listener.accept) { |socket| serve(socket) } } }
    @accepting.report_on_exception = false
  end

  # @return [String]
  def url = "http://127.0.0.1:#{@listener.addr[1]}#{@sheet.path}"

  def close
    @accepting.kill
    @listener.close
  end

  private

  def serve(socket)
    while (head = socket.gets("\r\n\r\n"))
      body = @bodies.fetch(head[/\AGET (\S+)/, 1])
      type = body.start_with?("GIF") ? "image/gif" : "text/html"
      socket.write("HTTP/1.1 200 OK\r\nContent-Type: #{type}\r\nContent-Length: #{body.bytesize}\r\n\r\n".b << body)
    end
  rescue SystemCallError, IOError
    nil # the client is gone
  ensure
    socket.close
  end
end
