# frozen_string_literal: true

require "test_helper"
require "support/broker_script"

# What the client sends, one by one and in batches, and what it makes of the answers.
class BrokerClientSenderTest < Minitest::Test
  include BrokerScript

  # --- SEND ---

  test "a message has all its fields, and its receipt what was reached" do
    sent = Queue.new
    broker(->(peer) { peer.welcome.then { sent << peer.read }.then { peer.take(sent.pop.tap { |frame| sent << frame }, value: 42, level: 2) }.then { serve(peer) } })
    receipt = client.send_message("books", {title: "Dune"}, to: :client, level: :synced, priority: 9, delay: 1.5, ttl: 60, properties: {"reply-to": "ann", n: 1})
    frame = sent.pop
    assert_equal [42, :synced, false], [receipt.id, receipt.level, receipt.duplicate?]
    assert_equal [1, 1, "books", 1, 2, 9, 1500, 60_000, '{"title":"Dune"}'], [frame.id, frame.sequence, frame.destination, frame.kind, frame.level, frame.priority, frame.delay, frame.time_to_live, frame.payload]
    assert_equal({"reply-to" => "ann", "n" => "1"}, Wire::Properties.parse(frame.properties))
  end

  test "answers are matched by their ids, in whatever order they come" do
    broker(lambda do |peer|
      peer.welcome
      frames = Array.new(3) { peer.read }
      frames.reverse_each { |frame| peer.take(frame, value: frame.payload.to_i) }
      serve(peer)
    end)
    client
    assert_equal [7, 8, 9], [7, 8, 9].map { |n| @client.send_async("q", n.to_s) }.map { |pending| pending.value(60).id }
  end

  test "one ACK may stand for a range" do
    broker(lambda do |peer|
      peer.welcome
      frames = Array.new(5) { peer.read }
      peer.write(Wire.ack(id: 2, last: 4, request: 2, level: 2, value: 50))
      peer.take(frames[4], value: 54)
      peer.take(frames[0], value: 49)
      serve(peer)
    end)
    client
    assert_equal [49, 50, 51, 52, 54], Array.new(5) { @client.send_async("q", "x") }.map { |pending| pending.value(60).id }
  end

  test "a refused message raises the class of its code, and its number is used again" do
    sent = Queue.new
    broker(lambda do |peer|
      peer.welcome
      2.times { sent << peer.read }
      first, second = sent.pop, sent.pop
      peer.refuse(first, Code::QUEUE_FULL, "full", retry_after: 250)
      peer.take(second)
      serve(peer) { |each| peer.take(each.tap { sent << each.sequence }) }
    end)
    client
    one, two = Array.new(2) { @client.send_async("q", "x") }
    error = assert_raises(Client::QueueFull) { one.value(60) }
    assert_equal ["full", Code::QUEUE_FULL, true, 0.25], [error.message, error.code, error.retryable?, error.retry_after]
    assert_kind_of Hikyaku::Error, error
    two.value(60)
    2.times { @client.send_message("q", "x") }
    assert_equal [1, 3], [sent.pop, sent.pop]
  end

  test "what is too big for the broker is not sent" do
    broker(lambda do |peer|
      hello = peer.read
      peer.write(Wire.welcome(id: hello.id, levels: 1, level: 0, max_frame: 4096, session: 1))
      serve(peer)
    end)
    client
    # A SEND has 41 bytes before the payload, and the PUSH that delivers it 48.
    (4049..4096).each { |bytes| assert_raises(Client::TooBig, bytes) { @client.send_message("q", "x" * bytes) } }
    assert @client.send_message("q", "x" * 4048)
    assert @client.send_message("q" * 20, "x" * 4036)
    error = assert_raises(Client::TooBig) { @client.send_message("q" * 20, "x" * 5000) }
    assert_match(/payload has 5000 bytes.*it may have 4036.*4096/, error.message)
    error = assert_raises(Client::TooBig) { @client.send_async("q", "x" * 4048, properties: {trace: "4711"}) }
    assert_match(/payload has 4048 bytes; with its properties, and to this queue, it may have 4036/, error.message)
    assert @client.send_message("q", "x" * 4036, properties: {trace: "4711"})
    results = @client.send_batch("q", ["x" * 4048, "x" * 4049, "x" * 2000])
    assert_equal [true, false, true], results.map { |result| result.is_a?(Client::Receipt) }
    assert_kind_of Client::TooBig, results[1]
  end

  # [arguments, keywords]
  [[["", "x"], {}], [["q" * 256, "x"], {}], [[nil, "x"], {}], [%w[q x], {priority: 10}], [%w[q x], {priority: -1}], [%w[q x], {delay: -1}],
    [%w[q x], {ttl: 5_000_000}], [%w[q x], {level: :safe}], [%w[q x], {to: :topic}], [%w[q x], {properties: {"" => "x"}}],
    [%w[q x], {properties: {"a" * 256 => "x"}}], [%w[q x], {delay: "1"}]].each_with_index do |(arguments, keywords), index|
    test "wrong message #{index} is not sent" do
      broker(->(peer) { serve(peer.welcome) })
      assert_raises(ArgumentError, NoMethodError) { client.send_message(*arguments, **keywords) }
    end
  end

  test "no more is sent than the broker permits, and the caller waits or is told" do
    gate = Queue.new
    broker(lambda do |peer|
      peer.welcome(window_messages: 2)
      frames = Array.new(2) { peer.read }
      gate << peer.quiet?(0.1)
      gate.pop while gate.size > 1
      peer.take(frames[0])
      peer.take(peer.read)
      peer.take(frames[1])
      serve(peer)
    end)
    client
    2.times { @client.send_async("q", "x") }
    assert_raises(Client::WindowFull) { @client.send_async("q", "x", wait: false) }
    third = @client.send_async("q", "third")
    assert gate.pop
    assert_equal 103, third.value(60).id
  end

  test "the window counts bytes, too, but one message always fits" do
    broker(lambda do |peer|
      peer.welcome(window_bytes: 100)
      frame = peer.read
      assert peer.quiet?(0.05)
      peer.take(frame)
      serve(peer)
    end)
    client
    @client.send_async("q", "x" * 200)
    assert_raises(Client::WindowFull) { @client.send_async("q", "x" * 200, wait: false) }
    assert @client.send_message("q", "x" * 200)
  end

  test "silence is in doubt after a while, and the answer may come still" do
    gate = Queue.new
    broker(->(peer) { peer.welcome.then { peer.read }.then { |frame| gate.pop.then { peer.take(frame) } }.then { serve(peer) } })
    client
    assert_raises(Client::OutcomeUnknown) { @client.send_message("q", "x", timeout: 0.05) }
    gate << true
    assert_equal 102, @client.send_message("q", "y").id
  end

  # --- batches ---

  test "a batch has a receipt or an error for each message" do
    batch = Queue.new
    broker(lambda do |peer|
      peer.welcome
      frame = peer.read
      batch << frame
      peer.write(Wire.ack(id: frame.id, request: 3, level: 1, count: 3, value: 500, refusals: [[1, Code::TOO_BIG, 0], [3, Code::QUEUE_FULL, 2000]]))
      serve(peer) { |each| peer.take(each.tap { batch << each.sequence }) }
    end)
    results = client.send_batch("q", ["a", Client::Message.new("b", properties: {x: 1}), {c: 1}, "d", "e"])
    frame = batch.pop
    assert_equal ["a", "b", '{"c":1}', "d", "e"], frame.messages.map(&:payload)
    assert_equal [1, 1, "q"], [frame.id, frame.sequence, frame.destination]
    assert_equal [500, nil, 501, nil, 502], results.map { |result| result.id if result.is_a?(Client::Receipt) }
    assert_equal [Client::TooBig, Client::QueueFull, 2.0], [results[1].class, results[3].class, results[3].retry_after]
    3.times { @client.send_message("q", "x") }
    assert_equal [2, 4, 6], Array.new(3) { batch.pop }
  end

  test "a batch is cut to what the broker takes at once, and sent one by one where numbers have holes" do
    frames = Queue.new
    broker(lambda do |peer|
      peer.welcome(window_messages: 3)
      peer.refuse(peer.read, Code::INVALID)
      serve(peer) do |frame|
        frames << frame
        next peer.take(frame) if frame.is_a?(Wire::Frames::Send)
        peer.write(Wire.ack(id: frame.id, request: 3, level: 1, count: frame.messages.size, value: 10 * frame.sequence))
      end
    end)
    client
    assert_raises(Client::Invalid) { @client.send_message("q", "x") }
    assert_equal 7, @client.send_batch("q", %w[a b c d e f g]).count { |result| result.is_a?(Client::Receipt) }
    assert_equal [[1, 3], [4, 3], [7, 1]], Array.new(3) { frames.pop.then { |frame| [frame.sequence, frame.respond_to?(:messages) ? frame.messages.size : 1] } }
  end

  test "a batch that waits for space is sent one by one when numbers have got a hole meanwhile" do
    waits = Queue.new
    sizes = Queue.new
    broker(lambda do |peer|
      peer.welcome(window_messages: 4090)
      first, *others = Array.new(4000) { peer.read_until(:SEND) }
      waits.pop
      peer.refuse(first, Code::QUEUE_FULL)
      others.each { |frame| peer.take(frame) }
      serve(peer) do |frame|
        sizes << (frame.is_a?(Wire::Frames::Send) ? 1 : frame.messages.size)
        next peer.take(frame) if frame.is_a?(Wire::Frames::Send)
        peer.write(Wire.ack(id: frame.id, request: 3, level: 1, count: frame.messages.size, value: 10 * frame.sequence))
      end
    end)
    client
    4000.times { @client.send_async("q", "x") }
    batch = Thread.new { @client.send_batch("q", Array.new(1000, "y"), timeout: 5) }
    eventually { batch.stop? }
    waits << true
    assert_equal 1000, batch.value.count { |result| result.is_a?(Client::Receipt) }
    assert_equal [1, 999], Array.new(2) { sizes.pop }
  end
end
