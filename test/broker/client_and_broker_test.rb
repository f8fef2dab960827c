# frozen_string_literal: true

require "test_helper"
require "support/broker_process"
require "support/connection_cutter"
require "support/running_broker"
require "timeout"

# The client and a real broker: what both promise together.
class BrokerClientAndBrokerTest < Minitest::Test
  Client = Hikyaku::Broker::Client

  def engine = "ruby"

  def running(**settings)
    RunningBroker.new(engine: engine, **settings)
  rescue Hikyaku::NativeUnavailable => error
    skip error.message
  end

  def setup
    @broker = running
    @random = Random.new(Minitest.seed || 1)
  end

  def teardown
    @proxy&.close
    @broker&.close
  end

  def proxy(**options) = @proxy = ConnectionCutter.new("#{@broker.folder}/b.sock", "#{@broker.folder}/p.sock", **options)

  def through_proxy(**options, &block) = Client.open("unix:#{@broker.folder}/p.sock", **options, &block)

  # All payloads that wait in a queue.
  def drain(queue)
    @broker.client do |client|
      receiver = client.receiver(queue, report_start: false)
      found = []
      while (delivery = receiver.receive(timeout: 0.3)) || left(client, queue).positive?
        next unless delivery
        found << delivery.payload
        delivery.ack
      end
      found
    end
  end

  def left(client, queue) = client.queues(queue).first.to_h.values_at("ready", "delayed", "out").sum(&:to_i)

  def await
    Timeout.timeout(60) { sleep 0.01 until yield }
  end

  # The larger ones let through much of what is sent, and none of the answers, if all is sent at once.
  {"soon" => 300..4000, "late" => 2000..12_000}.each do |name, bytes|
    test "over connections that are cut #{name}, again and again, every message is taken once, in order" do
      proxy(after: -> { @random.rand(bytes) })
      through_proxy do |client|
        pendings = Array.new(600) { |index| client.send_async("q", "message #{index}", properties: {n: index}) }
        pendings << client.send_batch("q", Array.new(40) { |index| "batch #{index}" })
        @proxy.calm
        assert_equal 600, pendings.first(600).count { |pending| pending.value(60).taken? }
        assert pendings.last.all?(&:taken?)
      end
      assert_operator @proxy.cuts, :>, 3
      assert_equal Array.new(600) { |index| "message #{index}" } + Array.new(40) { |index| "batch #{index}" }, drain("q")
    end
  end

  test "over connections that are cut while messages are received none is lost" do
    proxy(after: -> { @random.rand(500..6000) })
    @broker.client { |client| client.send_batch("q", Array.new(400, &:to_s)) }
    seen = Queue.new
    through_proxy do |client|
      client.subscribe("q", concurrency: 2, credit: 20) { |delivery| seen << delivery.payload }
      await { seen.size >= 400 && Array.new(seen.size) { seen.pop.tap { |each| seen << each } }.uniq.size == 400 }
      @proxy.calm
    end
    assert_operator @proxy.cuts, :>, 2
    # A FREE that a cut took along is no loss: its message is there again, and nothing else.
    assert_empty drain("q") - Array.new(400, &:to_s)
  end

  test "a broker that is restarted takes nothing twice, and has what it took" do
    client = @broker.client
    pendings = Array.new(200) { |index| client.send_async("q", index.to_s, level: :written) }
    @broker.restart
    pendings += Array.new(200) { |index| client.send_async("q", (200 + index).to_s, level: :written) }
    pendings.each { |pending| pending.value(60) }
    client.close
    assert_equal Array.new(400, &:to_s), drain("q")
  end

  test "a broker without storage forgets which numbers it took, and goes on taking messages" do
    client = @broker.client
    5000.times { client.send_async("q", "x", level: :memory) }
    client.send_message("q", "x", level: :memory)
    @broker.restart
    assert_equal 100, Array.new(100) { client.send_async("r", "y", level: :memory) }.map { |pending| pending.value(60) }.size
    client.close
    assert_equal 100, drain("r").size
  end

  test "who comes back under its name loses nothing to the numbers of before" do
    2.times do |round|
      @broker.client(identity: "ann") { |client| 50.times { |index| client.send_message("q", "#{round} #{index}") } }
    end
    assert_equal 100, drain("q").uniq.size
  end

  test "a request has its reply" do
    @broker.client do |server|
      server.subscribe("sums") { |delivery| server.send_message(delivery["reply-to"], delivery.json.sum, to: :client, properties: {correlation: delivery["correlation"]}) }
      @broker.client do |client|
        replies = client.receiver
        client.send_message("sums", [1, 2, 3], properties: {"reply-to": client.identity, correlation: "a"})
        reply = replies.receive(timeout: 60)
        assert_equal [6, "a"], [reply.json, reply["correlation"]]
      end
    end
  end

  test "who dies with a message in hand makes it suspect, and others that it had come back as they were" do
    @broker.client { |client| client.send_batch("q", %w[deadly harmless]) }
    pid = fork do
      client = Client.open(@broker.address)
      receiver = client.receiver("q")
      receiver.receive(timeout: 60)
      Process.kill(:KILL, Process.pid)
    end
    Process.wait(pid)
    @broker.client do |client|
      deliveries = []
      receiver = client.receiver("q")
      2.times { deliveries << receiver.receive(timeout: 60).tap(&:ack) }
      found = deliveries.to_h { |delivery| [delivery.payload, [delivery.poison_candidate?, delivery.crashes, delivery.failures]] }
      assert_equal({"deadly" => [true, 1, 0], "harmless" => [false, 0, 0]}, found)
    end
  end

  test "a lease that is over makes a delivery stale, and a lease that is kept does not end" do
    @broker.client do |client|
      client.send_batch("q", %w[kept forgotten])
      receiver = client.receiver("q", lease: 2)
      kept = nil
      gate = Queue.new
      # What comes behind it is for the others.
      working = Thread.new { receiver.work(idle: 0) { |delivery| kept ? delivery.release : (kept = delivery) && gate.pop } }
      await { kept }
      forgotten = receiver.receive(timeout: 60)
      await { forgotten.stale? }
      gate << true
      again = receiver.receive(timeout: 60)
      assert_equal [forgotten.id, 1], [again.id, again.crashes]
      assert_predicate forgotten, :stale?
      refute forgotten.ack(wait: true)
      assert again.ack(wait: true)
      await { kept.settled? }
      refute_predicate kept, :stale?
      receiver.close
      working.join
      assert_equal 0, client.queues("q").first["ready"]
    end
  end

  test "a delivery that its taker drops comes again when its lease has ended, to the same taker if there is no other" do
    @broker.client do |client|
      client.send_message("q", "x")
      receiver = client.receiver("q", lease: 0.2)
      assert_equal [0, 1], Array.new(2) { receiver.receive(timeout: 60) }.map(&:crashes)
    end
  end

  test "what fails comes again, and is dead in the end" do
    @broker.close
    @broker = running(broker_max_failures: 2)
    tried = Queue.new
    @broker.client do |client|
      id = client.send_message("q", "x").id
      client.subscribe("q", retry_in: 0) { |delivery| tried.push(delivery.attempt).then { raise ArgumentError, "no" } }
      await { client.queues("q").first["dead"] == 1 }
      assert_equal [id, 1, "ArgumentError: no", 2], client.dead("q").first.values_at("id", "reason", "words", "failures")
    end
    assert_equal [1, 2], Array.new(tried.size) { tried.pop }
  end

  test "two clients of one identity: the later one has it" do
    first = @broker.client(identity: "ann")
    @broker.client(identity: "ann") { |second| assert second.send_message("q", "x") }
    error = assert_raises(Client::Fenced) do
      await do
        first.send_message("q", "x").nil?
      rescue Client::OutcomeUnknown
        next # it was on its way when the other came
      end
    end
    assert_match(/identity of its own/, error.message)
  ensure
    first&.close
  end

  test "a client whose clock was set back since its identity was there before has it again" do
    ahead = Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond) + 5 * 365 * 86_400 * 10**9
    first = UNIXSocket.new("#{@broker.folder}/b.sock")
    first.write(Hikyaku::Broker::Wire.hello(id: 1, identity: "ann", epoch: ahead))
    assert_predicate first.readpartial(100), :itself
    3.times { |number| @broker.client(identity: "ann") { |later| assert later.send_message("q", number.to_s) } }
    assert_equal %w[0 1 2], drain("q")
  ensure
    first&.close
  end

  test "a queue that is full refuses, and what it refused can be sent again" do
    @broker.close
    @broker = running(broker_max_queue_messages: 2)
    @broker.client do |client|
      results = client.send_batch("q", %w[a b c])
      assert_equal [true, true, false], results.map { |result| result.is_a?(Client::Receipt) }
      error = assert_raises(Client::QueueFull) { client.send_message("q", "d") }
      assert_predicate error, :retryable?
      assert_equal %w[a b], drain("q")
      assert client.send_message("q", "e")
    end
  end

  test "over a Unix socket a client is known by its process" do
    @broker.client { |client| assert_equal ["unix, process #{Process.pid}"], client.sessions.map { |session| session["address"] } }
  end
end

# The same, and the engine in C.
class BrokerClientAndNativeBrokerTest < BrokerClientAndBrokerTest
  def engine = "c"
end

# The client and a broker that is a process of its own, with storage: what a kill leaves of its numbers.
class BrokerClientAndKilledBrokerTest < Minitest::Test
  def setup
    reason = BrokerProcess.missing
    skip reason if reason
    @broker = BrokerProcess.new
  end

  def teardown = @broker&.close

  test "a batch without an answer, whose last numbers the broker does not take after a kill, is taken, and the client goes on" do
    client = @broker.client
    Array.new(4080) { client.send_async("q", "x", level: :memory) }.each { |pending| pending.value(60) }
    @broker.pause
    batch = Thread.new { client.send_batch("r", Array.new(30, &:to_s), level: :written, timeout: 60) }
    batch.report_on_exception = false
    Timeout.timeout(60) { sleep 0.01 until batch.stop? }
    @broker.kill.start
    assert batch.value.all?(&:taken?)
    assert Array.new(5000) { client.send_async("q", "y", level: :memory) }.all? { |pending| pending.value(60).taken? }
    assert_equal [30, 5000], %w[r q].map { |name| client.queues(name).first["ready"] }
    receiver = client.receiver("r", report_start: false)
    assert_equal Array.new(30, &:to_s), Array.new(30) { receiver.receive(timeout: 60).payload }
  ensure
    client&.close(timeout: 1)
  end
end
