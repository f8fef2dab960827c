# frozen_string_literal: true

require "test_helper"
require "hikyaku/broker/client"

# Numbers of messages, without a connection (docs/protocol.md, section 6).
class BrokerClientSendWindowTest < Minitest::Test
  Client = Hikyaku::Broker::Client
  Wire = Hikyaku::Broker::Wire

  def window(numbered: true, reused: false, **welcome)
    @lock = Mutex.new
    @window = Client::SendWindow.new(numbered: numbered, reused: reused)
    connect(**welcome)
    @window
  end

  def connect(low: 0, window_messages: 1_000_000, window_bytes: 1 << 30, max_frame: 1 << 20)
    @window.connected(Wire::Frames::Welcome.new(1, 1, 7, 1, 0, max_frame, 0, window_messages, window_bytes, 1, low))
  end

  def add(count: 1, payload: "x" * 51, transmitted: true)
    request = Client::SendRequest.new(Client::Pending.new(@lock), "q", [Client::Message.new(payload)] * count)
    @window.add(request).tap { request.transmitted = transmitted }
  end

  def result(request) = request.pending.value(0)

  def take(number, **fields)
    ack = {id: number, request: Wire::Type::SEND, level: 1, count: 0, value: 1000 + number, last: number, duplicate: false, refusals: [], **fields}
    @window.acknowledge(Wire::Frames::Ack.new(*ack.values))
  end

  def refuse(number, code = Wire::Code::QUEUE_FULL) = @window.refuse(number, Client::Refused.of(code))

  test "no number is more than 4,096 above the lowest that is not settled" do
    window
    4096.times { |index| assert_equal index + 1, add.number }
    refute @window.fits?(1, 1)
    4096.downto(2) { |number| take(number) }
    refute @window.fits?(1, 1)
    take(1)
    assert @window.fits?(4096, 1)
    refute @window.fits?(4097, 1)
  end

  test "a number that was refused holds the others back until it is used again" do
    window
    4096.times { add }
    refuse(1)
    (2..4096).each { |number| take(number) }
    refute @window.fits?(2, 1)
    refute_predicate @window, :batches?
    assert @window.fits?(1, 1)
    assert_equal 1, add.number
    refute @window.fits?(1, 1)
    take(1)
    assert_equal 4097, add.number
    assert_predicate @window, :batches?
  end

  test "what was refused to the end is sent again in one frame, whether it came alone or in a batch" do
    window
    add(count: 6)
    refusals = (2..5).map { |index| Wire::Frames::Refusal.new(index, Wire::Code::QUEUE_FULL, 0) }
    take(1, request: Wire::Type::SEND_BATCH, count: 2, refusals: refusals)
    assert_predicate @window, :batches?
    assert_equal 3, add(count: 4).number
    take(3, request: Wire::Type::SEND_BATCH, count: 4)
    3.times { add }
    [7, 8, 9].each { |number| refuse(number) }
    assert_predicate @window, :batches?
    assert_equal 7, add(count: 3).number
  end

  test "the highest number that was refused is simply the next" do
    window
    3.times { add }
    refuse(3)
    assert_predicate @window, :batches?
    assert_equal 3, add.number
  end

  test "what has no number waits for nothing but the window" do
    window(numbered: false, window_messages: 5000)
    5000.times { add }
    refute @window.fits?(1, 1)
    4999.downto(2) { |number| take(number) }
    assert @window.fits?(1, 1)
  end

  test "counts go down with every answer" do
    window(window_messages: 3, window_bytes: 1000)
    one, two = add, add(count: 2)
    refute @window.fits?(1, 1)
    take(one.number)
    assert @window.fits?(1, 1)
    refute @window.fits?(1, 950)
    take(two.number, request: Wire::Type::SEND_BATCH)
    assert_predicate @window, :empty?
    assert_equal 2, result(two).size
  end

  test "a range that is no range, or longer than any, is not understood" do
    window
    add
    assert_raises(Client::NotUnderstood) { take(1, last: 0) }
    assert_raises(Client::NotUnderstood) { take(1, last: (1 << 64) - 1) }
    assert_equal [], take(77)
  end

  test "what waits is withdrawn, and what was sent is not" do
    window
    sent, waiting = add, add(transmitted: false)
    refute @window.withdraw(sent)
    assert @window.withdraw(waiting)
    assert_equal 2, add.number
  end

  test "after a broker has forgotten everything, what is far above begins anew" do
    window
    5000.times { |index| take(add.number) && index }
    in_doubt = Array.new(3) { add }
    assert_equal in_doubt, connect(low: 0)
    assert_equal [1, 2, 3], in_doubt.map(&:number)
    assert in_doubt.all?(&:doubtful)
    # Its 4,096 numbers are used up first.
    numbers = Array.new(4093) { add.number }
    assert_equal (4..4096).to_a, numbers
    refute @window.fits?(1, 1)
    (1..4096).each { |number| take(number) }
    assert_equal [4097, true], add.then { |request| [request.number, request.doubtful] }
    assert_equal [4098], take(4097, duplicate: true).map(&:number)
  end

  test "after a broker has forgotten some, those in its reach keep their numbers" do
    window
    10.times { take(add.number) }
    in_doubt = add
    assert_equal [in_doubt], connect(low: 4)
    assert_equal [11, false], [in_doubt.number, in_doubt.doubtful]
    assert_equal [5, 6, 7, 8, 9, 10, 12], Array.new(7) { add.number }
    assert take(11, duplicate: true).empty?
    assert_predicate result(in_doubt), :duplicate?
  end

  test "a batch above all that the broker takes is sent message by message, and is done when each has its answer" do
    window
    5000.times { take(add.number) }
    batch = add(count: 5)
    parts = connect(low: 0)
    assert_equal [[1, 1], [2, 1], [3, 1], [4, 1], [5, 1]], parts.map { |part| [part.number, part.count] }
    take(1, request: Wire::Type::SEND_BATCH)
    [3, 4, 5].each { |number| take(number, request: Wire::Type::SEND_BATCH) }
    refute_predicate batch.pending, :done?
    refuse(2)
    assert_equal [true, false, true, true, true], result(batch).map { |result| result.is_a?(Client::Receipt) }
    assert_predicate @window, :empty?
  end

  test "a batch that ends above what the broker takes keeps the numbers that it can keep, and the client goes on" do
    window
    4080.times { take(add.number) }
    batch = add(count: 30)
    parts = connect(low: 0)
    assert_equal [[4081, 16, false], *(1..14).map { |number| [number, 1, true] }], parts.map { |part| [part.number, part.count, part.doubtful] }
    assert_equal [0, *16..29], parts.map(&:offset)
    parts.each { |part| take(part.number, request: Wire::Type::SEND_BATCH) }
    assert_equal 30, result(batch).size
    # Each number that the broker may miss is used before any that it does not take.
    assert_equal (15..4080).to_a + [4097], Array.new(4067) { add.number.tap { |number| take(number) } }
  end

  test "a number that is too far ahead shows that lower ones were forgotten" do
    window
    one = add
    4095.times { take(add.number) }
    assert_equal [one], connect(low: 0)
    take(1)
    far = Array.new(2) { add }
    assert_equal [4097, 4098], far.map(&:number)
    take(4097)
    assert_equal [far.last], refuse(4098, Wire::Code::SEQUENCE)
    assert_equal [1, true], [far.last.number, far.last.doubtful]
    assert_equal [2], take(1, duplicate: true).map(&:number)
  end

  test "a number that is too far ahead goes again as a lower one that was refused, though no number above that is in use" do
    window
    add
    two = add
    refuse(1)
    assert_equal [two], refuse(2, Wire::Code::SEQUENCE)
    assert_equal 1, two.number
  end

  test "what a broker that drains refused was not taken, whether it had a number or not" do
    window(numbered: false)
    held, lost = add, add
    refuse(held.number, Wire::Code::DRAINING)
    assert_equal [held], connect
    assert_raises(Client::OutcomeUnknown) { result(lost) }
  end

  test "what the next broker is too small for is refused" do
    window
    big, small = add(payload: "x" * 5000), add
    assert_equal [small], connect(max_frame: 4096)
    assert_raises(Client::TooBig) { result(big) }
  end

  test "the number of what is refused so, which the broker has forgotten, is not used before its time" do
    window
    5000.times { take(add.number) }
    add(payload: "x" * 5000)
    connect(max_frame: 4096)
    assert_equal (1..5010).to_a, Array.new(5010) { add.number.tap { |number| take(number) } }
  end

  test "all that a broker that drains refused is sent to the next, in order" do
    window
    all = Array.new(3) { add }
    refuse(2, Wire::Code::DRAINING)
    take(1)
    refute_predicate @window, :quiet?
    refuse(3, Wire::Code::DRAINING)
    assert_predicate @window, :quiet?
    assert_equal all.last(2), connect
  end

  test "what a broker that drains refused of a batch is sent to the next, and the batch is done when that has its answer" do
    window
    batch = add(count: 4)
    refusals = [[1, Wire::Code::DRAINING, 0], [2, Wire::Code::QUEUE_FULL, 0], [3, Wire::Code::DRAINING, 0]].map { |each| Wire::Frames::Refusal.new(*each) }
    again = take(1, request: Wire::Type::SEND_BATCH, last: 1, count: 1, value: 0, duplicate: true, refusals: refusals)
    assert_equal [2, 3], again.map(&:number)
    refute_predicate batch.pending, :done?
    assert_equal again, connect(low: 1)
    again.each { |part| take(part.number, request: Wire::Type::SEND_BATCH, count: 1) }
    assert_equal [true, true, false, true], result(batch).map { |result| result.is_a?(Client::Receipt) }
  end

  test "what is sent again is sent in the order of the first time, whatever the numbers" do
    window
    3.times { add }
    refuse(1)
    later = add
    assert_equal 1, later.number
    assert_equal [2, 3, 1], connect.map(&:number)
  end

  test "random answers lose no message and use no number for two" do
    random = Random.new(Minitest.seed || 1)
    window
    taken = {}
    under_way = {}
    3000.times do |index|
      under_way[add.number] = index if @window.fits?(1, 1)
      next unless random.rand < 0.6 && under_way.any?
      number = under_way.keys.sample(random: random)
      message = under_way.delete(number)
      if random.rand < 0.3
        refuse(number)
      else
        take(number)
        refute taken.key?(number), "number #{number} has two messages"
        taken[number] = message
      end
    end
    assert_equal taken.values.size, taken.values.uniq.size
    assert_equal under_way.size, @window.size
  end
end
