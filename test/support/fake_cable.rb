# frozen_string_literal: true

require "json"
require "socket"

# A server that speaks Action Cable's protocol over WebSockets as far as a client can tell: it welcomes, confirms, and sends a
# message to all who have subscribed to its topic. One publishes by a POST, whose body is the message, or by a command.
class FakeCable
  HEAD = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
  ANSWER = "HTTP/1.1 204 No Content\r\n\r\n"

  attr_reader :port, :requests, :topics, :too_early, :spoken, :published

  # @param refuse [Boolean] subscriptions
  def initialize(refuse: false)
    @refuse = refuse
    @requests, @topics, @too_early, @spoken, @published = Array.new(5) { [] }
    @readers = []
    @lock = Mutex.new
    @listener = TCPServer.new("127.0.0.1", 0)
    @port = @listener.addr[1]
    @accepting = Thread.new { loop { Thread.new(@listener.accept) { |socket| serve(socket) } } }
  end

  def close
    @accepting.kill
    @listener.close
  end

  private

  def serve(socket)
    head = socket.gets("\r\n\r\n") or return
    @lock.synchronize { @requests << head }
    head.start_with?("POST") ? answer(head, socket) : welcome(socket)
  rescue SystemCallError, IOError
    nil # the client is gone
  end

  def answer(head, socket)
    loop do
      text = socket.read(head[/content-length: (\d+)/i, 1].to_i)
      @lock.synchronize { @published << text[/@T.*@/] }
      send_to_all(text)
      socket.write(ANSWER)
      head = socket.gets("\r\n\r\n") or return
    end
  end

  # In pieces, as a network may bring it.
  def welcome(socket)
    socket.write(HEAD)
    @lock.synchronize { @too_early << socket.read_nonblock(100) } if socket.wait_readable(0.01)
    frame(%({"type":"welcome"})).each_char { |byte| socket.write(byte) }
    while (text = read_frame(socket))
      on_command(JSON.parse(text), socket)
    end
  end

  def on_command(command, socket)
    return speak(command.fetch("text"), socket) if command["command"] == "message"
    topic = JSON.parse(command.fetch("identifier")).fetch("topic")
    @lock.synchronize do
      @topics << topic
      @readers << [socket, topic]
    end
    socket.write(frame(JSON.generate(identifier: command["identifier"], type: @refuse ? "reject_subscription" : "confirm_subscription")))
  end

  def speak(text, socket)
    @lock.synchronize { @spoken << [socket.fileno, text] }
    send_to_all(text)
  end

  # The load publishes to topics in turn, by the number of the message.
  def send_to_all(text)
    number = text[/@T\h{16}(\h{8})@/, 1].to_i(16)
    @lock.synchronize do
      count = @topics.uniq.size
      @readers.each { |socket, topic| socket.write(frame(JSON.generate(message: text))) if number % count == topic.to_i }
    end
  end

  def frame(text)
    size = text.bytesize
    length = case size
    when ..125 then [size].pack("C")
    when ..65_535 then [126, size].pack("Cn")
    else [127, size].pack("CQ>")
    end
    ["\x81".b, length, text.b].join
  end

  def read_frame(socket)
    head = socket.read(2) or return
    first, second = head.unpack("CC")
    raise "a client's frame is a masked text" unless first == 0x81 && second >= 0x80
    length = second & 0x7f
    length = socket.read(2).unpack1("n") if length == 126
    length = socket.read(8).unpack1("Q>") if length == 127
    mask = socket.read(4).bytes
    socket.read(length).bytes.each_with_index.map { |byte, index| byte ^ mask[index % 4] }.pack("C*").force_encoding("UTF-8")
  end
end
