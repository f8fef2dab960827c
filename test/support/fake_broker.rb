# frozen_string_literal: true

require "socket"
require "hikyaku/broker/wire"

# The least of a broker, in this process, that does what a test wants of it: for the load generator of the benchmarks.
class FakeBroker
  Wire = Hikyaku::Broker::Wire
  # A receiver: where its messages go, and the number of the last delivery.
  Receiver = Struct.new(:socket, :subscription, :delivery)

  # @return [Array<Struct>] what came, of all connections
  attr_reader :frames
  # @return [Integer]
  attr_reader :port

  # @param answers [Symbol] each SEND has its ACK (:each), those of a read have one (:range), come backwards (:backwards) or
  #   come :twice
  # @param levels [Integer] bits of those that it has
  # @param reached [Integer, nil] level that every ACK says; nil: what was asked for
  # @param deliver [Proc] number of a message from 0, and its queue: to which queues it is pushed
  # @param greeting [String] bytes after the answer to HELLO
  def initialize(answers: :each, levels: 7, reached: nil, deliver: ->(_number, queue) { [queue] }, greeting: "")
    @answers, @levels, @reached, @deliver, @greeting = answers, levels, reached, deliver, greeting
    @listener = TCPServer.new("127.0.0.1", 0)
    @port = @listener.addr[1]
    @frames = []
    @receivers = {}
    @taken = -1
    @lock = Mutex.new
    @accepting = Thread.new { loop { Thread.new(@listener.accept) { |socket| serve(socket) } } }
  end

  def close
    @accepting.kill
    @listener.close
  end

  private

  def serve(socket)
    reader = Wire::Reader.new(from: :client)
    identity = nil
    loop do
      batch = []
      reader.read(socket.readpartial(65_536)) { |frame, _size| batch << frame }
      @lock.synchronize do
        @frames.concat(batch)
        identity = batch.grep(Wire::Frames::Hello).map(&:identity).first || identity
        batch.each { |frame| answer(socket, frame, identity) }
        take(socket, batch.grep(Wire::Frames::Send))
      end
    end
  rescue SystemCallError, IOError
    socket.close
  end

  def answer(socket, frame, identity)
    case frame
    when Wire::Frames::Hello
      socket << Wire.welcome(id: frame.id, levels: @levels, level: 0, max_frame: 1 << 20, session: 1) << @greeting
    when Wire::Frames::Subscribe
      @receivers[frame.name.empty? ? "@#{identity}" : frame.name] = Receiver.new(socket, frame.subscription, 0)
      socket << Wire.ack(id: frame.id, request: Wire::Type::SUBSCRIBE)
    when Wire::Frames::Free then free(socket, frame)
    end
  end

  def free(socket, frame)
    @freed ||= Hash.new(0)
    count = frame.first.zero? ? frame.last - @freed[socket] : 1
    @freed[socket] = frame.last
    socket << Wire.ack(id: frame.id, request: Wire::Type::FREE, count: count)
  end

  def take(socket, sends)
    return if sends.empty?
    socket << answers(sends).join
    sends.each { |frame| push(frame, (frame.kind == 1) ? "@#{frame.destination}" : frame.destination) }
  end

  def answers(sends)
    level = @reached || sends.first.level
    if @answers == :range
      return [Wire.ack(id: sends.first.id, request: Wire::Type::SEND, level: level, value: 1, last: (sends.last.id if sends.size > 1))]
    end
    acks = sends.map { |frame| Wire.ack(id: frame.id, request: Wire::Type::SEND, level: level, value: 1) }
    return acks + acks if @answers == :twice
    (@answers == :backwards) ? acks.reverse : acks
  end

  def push(frame, queue)
    @deliver.call(@taken += 1, queue).each do |name|
      receiver = @receivers[name] or next
      receiver.socket << Wire.push(id: receiver.delivery += 1, subscription: receiver.subscription, message: @taken + 1, payload: frame.payload,
        sent_at: 0, lease: 30_000, properties: Wire::Properties.pack("trace" => "x"))
    end
  end
end
