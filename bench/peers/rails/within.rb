# frozen_string_literal: true

require "socket"

# The way to publish from inside of a process, as a job or a model's callback does, and still be told when: a thread for each
# connection reads requests with a form, `topic=…&data=…`, and calls the block. Neither Puma nor Rails has a part in it.
module Within
  ANSWER = "HTTP/1.1 204 No Content\r\n\r\n"
  FORM = /\Atopic=(?<topic>[^&]*)&data=(?<text>.*)\z/m

  # @param host [String]
  # @yieldparam topic [String]
  # @yieldparam text [String]
  # @return [Integer] the port on which it listens
  def self.open(host, &publish)
    listener = TCPServer.new(host, 0)
    Thread.new { loop { Thread.new(listener.accept) { |socket| serve(socket, publish) } } }
    listener.addr[1]
  end

  def self.serve(socket, publish)
    socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, true)
    while (head = socket.gets("\r\n\r\n"))
      form = FORM.match(socket.read(head[/^content-length: *(\d+)/i, 1].to_i))
      publish.call(form[:topic], form[:text])
      socket.write(ANSWER)
    end
  rescue SystemCallError
    nil # the other side is gone
  ensure
    socket.close
  end
  private_class_method :serve
end
