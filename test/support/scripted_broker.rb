# frozen_string_literal: true

require "hikyaku/broker/wire"
require "socket"
require "tmpdir"
require "fileutils"

# A broker that does what a test says, frame by frame: each connection is given to the next block of the script, and the
# last block serves all that follow.
#
#     broker = ScriptedBroker.new(->(peer) { peer.welcome; peer.push(payload: "x"); peer.read })
#     broker.address   # => "unix:/tmp/…/broker.sock"
#     broker.close
class ScriptedBroker
  PATIENCE = 180
  Wire = Hikyaku::Broker::Wire

  # The script expects something that does not come.
  class Missing < StandardError
  end

  # One connection, from the broker's side.
  class Peer
    attr_reader :hello

    def initialize(io)
      @io = io
      @reader = Wire::Reader.new(from: :client, max_frame: 1 << 30)
      @frames = []
      @deliveries = 0
    end

    # @return [Struct] the next frame
    def read(seconds = PATIENCE)
      while @frames.empty?
        raise Missing, "no frame came within #{seconds} seconds" unless @io.wait_readable(seconds)
        @reader.read(@io.readpartial(65_536)) { |frame, _| @frames << frame }
      end
      @frames.shift
    end

    # The next frame of this type, past others.
    def read_until(type)
      loop do
        frame = read
        return frame if Wire::Frames.name_of(frame) == type
      end
    end

    # @return [Boolean] nothing came
    def quiet?(seconds)
      @frames.empty? && @io.wait_readable(seconds).nil?
    end

    # @return [nil] when the client has closed
    def read_to_end
      loop { read }
    rescue EOFError, SystemCallError
      nil
    end

    def write(*frames) = @io.write(frames.join)

    def welcome(session: 1, **fields)
      @hello = read
      write(Wire.welcome(id: @hello.id, levels: 7, level: 1, max_frame: 1 << 20, session: session, **fields))
      @deliveries = session << 36
      self
    end

    # @return [Integer] the number of the subscription
    def accept_subscription
      frame = read_until(:SUBSCRIBE)
      write(Wire.ack(id: frame.id, request: 4))
      frame.subscription
    end

    # @return [Integer] the delivery
    def push(payload: "x", subscription: 1, message: 7, lease: 30_000, **fields)
      @deliveries += 1
      write(Wire.push(id: @deliveries, subscription: subscription, message: message, payload: payload, sent_at: 1_700_000_000_000, lease: lease, **fields))
      @deliveries
    end

    # Acknowledges a SEND.
    def take(frame, value: 100 + frame.sequence, level: 1, **fields) = write(Wire.ack(id: frame.id, request: 2, level: level, value: value, **fields))

    def refuse(frame, code, sentence = "", **fields) = write(Wire.error(id: frame.id, code: code, sentence: sentence, **fields))

    def close
      @io.close
    rescue IOError
      nil
    end

    attr_reader :io
  end

  attr_reader :connections

  def initialize(*script)
    @folder = Dir.mktmpdir("hikyaku-broker")
    @server = UNIXServer.new(File.join(@folder, "broker.sock"))
    @script = script
    @connections = 0
    @errors = Queue.new
    @threads = []
    @accepting = Thread.new { accept }
  end

  def address = "unix:#{@folder}/broker.sock"

  # Ends it, and raises what a script has raised.
  def close
    [@accepting, *@threads].each(&:kill).each(&:join)
    @server.close
    FileUtils.rm_rf(@folder)
    raise @errors.pop unless @errors.empty?
  end

  # Waits for all scripts that were begun.
  def join
    @threads.each { |thread| thread.join(PATIENCE) or raise Missing, "a script did not end" }
    raise @errors.pop unless @errors.empty?
  end

  private

  def accept
    loop do
      io = @server.accept
      script = @script[[@connections, @script.size - 1].min]
      @connections += 1
      @threads << Thread.new { serve(script, Peer.new(io)) }
    end
  rescue IOError
    nil
  end

  def serve(script, peer)
    script.call(peer)
  rescue EOFError, Errno::EPIPE, Errno::ECONNRESET
    nil
  rescue => error
    @errors << error
  ensure
    peer.close
  end
end
