# frozen_string_literal: true

require "test_helper"
require "hikyaku/hub"
require "support/format_readers"

class StreamFormatTest < Minitest::Test
  HUB_URL = "https://hub.example.com/.well-known/mercure"
  MessagePack = Hikyaku::Hub::StreamFormat::MessagePack

  def setup
    @topics = Hikyaku::Hub::Topics.new(hub_url: HUB_URL)
    @engine = Hikyaku::Hub::RubyEngine.new(topics: @topics, heartbeat: nil)
  end

  def subscribe(topic = "/a", **options)
    matcher = Hikyaku::Hub::Matcher.build(type: "exact", pattern: topic, base: HUB_URL)
    subscriber = @engine.subscribe(Hikyaku::Hub::Grant.new(matchers: [matcher]), now: 1.0, **options)
    subscriber.connection = +"".b
    @engine.writable(subscriber)
    subscriber
  end

  def publish(data, topic = "/a")
    @engine.publish(Hikyaku::Hub::Update.new(topics: topic, data: data), topics: [@topics[topic]], now: 1.0)
    drain
  end

  def drain = @engine.serve(1_000, 65_536, now: 1.0) { |subscriber, bytes| subscriber.connection << bytes and bytes.bytesize }

  # @return [Integer] how many frames were encoded meanwhile
  def encoded
    count = 0
    trace = TracePoint.new(:call) { |point| count += 1 if point.method_id == :encode && point.self.equal?(MessagePack) }
    trace.enable { yield }
    count
  end

  test "an event is encoded once, however many streams receive it, by whatever matchers" do
    readers = Array.new(20) { subscribe(format: :message_pack) } + Array.new(20) { |i| subscribe((i % 2 == 0) ? "/a" : "*", format: :message_pack) }
    assert_equal(15, encoded { 15.times { |i| publish("number #{i}") } })
    assert_equal 1, readers.map(&:connection).uniq.size
  end

  test "streams in both formats, in turn, each get their own and in their format" do
    plain, packed = 20.times.map { |i| subscribe(format: i.even? ? :events : :message_pack) }.partition.with_index { |_, i| i.even? }
    5.times { |i| publish("number #{i}") }
    assert_equal [1, 1], [plain, packed].map { |readers| readers.map(&:connection).uniq.size }
    assert_equal 5, plain.first.connection.scan(/^data: number \d/).size
    assert_equal(5.times.map { |i| "number #{i}" }, (FormatReaders::Pack.new << packed.first.connection).events.map(&:last))
  end

  test "while no stream has another format nothing is encoded" do
    subscribe
    assert_equal(0, encoded { publish("one") })
  end

  test "what was encoded is dropped when the last stream has left" do
    readers = Array.new(2) { subscribe(format: :message_pack) }
    publish("one")
    format = readers.first.format
    assert_equal 1, format.cached
    readers.each { |reader| @engine.unsubscribe(reader, now: 1.0) }
    assert_equal 0, format.cached
  end

  test "what was encoded is retained until it is too much, or the ring has passed the events, and then encoded again" do
    log = Hikyaku::Hub::History.new(capacity: 8_000, topics: @topics, cipher: Hikyaku::Log::PositionCipher.new)
    format = MessagePack.new(log)
    append = proc { log.append(Hikyaku::Hub::Update.new(topics: "/a", data: "x" * 340), topics: [@topics["/a"]], type: nil, private: false) }
    fetch = ->(position) { format.encode(position, log[position]) }
    4.times(&append)
    assert_equal(3, encoded { [1, 2, 3, 3, 2].each(&fetch) })
    assert_equal(3, encoded { [4, 4, 1, 2].each(&fetch) }, "the oldest were dropped")
    5.times(&append)
    log.keep_from(9)
    fetch.call(9)
    assert_equal 1, format.cached
    format.encode(10, Hikyaku::Hub::Record.new(frame: "data: #{"x" * 5_000}\n\n".b, topics: [], id: "1", private: false))
    assert_equal 0, format.cached
  end

  # Server-Sent Events, and what they are as MessagePack.
  VALUES = {
    ":\n\n" => [nil], ": caught up\n\n" => [true], ":\n\n: caught up\n\n:\n\n" => [nil, true, nil],
    "id: 1\ndata: x\n\n" => [["1", nil, "x"]], "data: x\n\n" => [[nil, nil, "x"]], "event: t\ndata: \n\n" => [[nil, "t", ""]],
    "data: a\ndata: \ndata:  b\n\n" => [[nil, nil, "a\n\n b"]], "data: id: x\n\n" => [[nil, nil, "id: x"]], "data: :\n\n" => [[nil, nil, ":"]],
    "retry: 7\n\n" => [7], "event: t\nretry: 300\nid: é\ndata: é\n\n" => [300, ["é", "t", "é"]], "id: 1\n\n" => [], "id: 1\n\ndata: x\n\n" => [[nil, nil, "x"]],
    "retry: no\ndata: x\n\n" => [[nil, nil, "x"]], "other: 1\ndata: x\n\n" => [[nil, nil, "x"]], "data: x" => [[nil, nil, "x"]], "" => []
  }.freeze

  test "what events say as MessagePack" do
    VALUES.each { |frames, values| assert_equal values, (FormatReaders::Pack.new << MessagePack.encode(frames.b)).values, frames.inspect }
    [0, 127, 128, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 10**12 - 1].each do |number|
      assert_equal [number], (FormatReaders::Pack.new << MessagePack.encode("retry: #{number}\n\n")).values
    end
    [0, 31, 32, 255, 256, 65_535, 65_536].each do |size|
      assert_equal size, (FormatReaders::Pack.new << MessagePack.encode("data: #{"x" * size}\n\n")).values.first.last.size
    end
  end

  test "numbers and strings take as little as they can" do
    {"retry: 5\n\n" => "05", "retry: 200\n\n" => "CCC8", "retry: 1000\n\n" => "CD03E8", "retry: 70000\n\n" => "CE00011170", "id: 1\ndata: x\n\n" => "93A131C0A178",
     "event: t\ndata: \n\n" => "93C0A174A0", ":\n\n" => "C0", ": caught up\n\n" => "C3"}.each do |frames, bytes|
      assert_equal bytes, MessagePack.encode(frames).unpack1("H*").upcase
    end
  end
end
