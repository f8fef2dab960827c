# frozen_string_literal: true

require "test_helper"
require "support/broker_process"
require "support/cutting_proxy"
require "support/shifted_clock"
require "support/total_queue"

# Senders and receivers over a broker to which the worst happens: nothing that was acknowledged is lost, nothing is taken
# twice, nothing comes back after its receiver was told that it is done with.
class BrokerTotalQueueTest < Minitest::Test
  Client = Hikyaku::Broker::Client

  QUEUE = "total"
  SECONDS = Float(ENV.fetch("HIKYAKU_TEST_BROKER_SECONDS", 4))
  # Times that the worst happens, however slow the machine is.
  LEAST = 3
  # Nobody is to become a dead letter for what happens to the connections.
  FLAGS = %w[--max-crashes 60000 --drain 1].freeze
  # Seconds in which everything must have come out when the worst is over.
  PATIENCE = 180

  def setup
    reason = BrokerProcess.missing
    skip reason if reason
    start
    @queue = TotalQueue.new
    @sending = @receiving = true
    @clients = []
    @lock = Mutex.new
  end

  def teardown
    @sending = @receiving = false
    Array(@clients).each { |client| client.close rescue nil } # standard:disable Style/RescueModifier
    @proxy&.close
    @broker&.close
    @clock&.close
  end

  test "kill -9 loses nothing that was acknowledged as written" do
    play(:written) do
      sleep 0.7
      @broker.kill
      sleep 0.1
      @broker.start
    end
  end

  test "kill -9 loses nothing that was acknowledged as synced" do
    play(:synced) do
      sleep 0.7
      @broker.kill.start
    end
  end

  test "being stopped and continued loses nothing" do
    play(:written) do
      @broker.pause
      sleep 0.6
      @broker.go_on
      sleep 0.3
    end
  end

  test "cut connections lose nothing" do
    play(:memory) do
      sleep 0.15
      @proxy.cut
    end
  end

  test "orderly restarts lose nothing, at whatever level" do
    play(:memory) do
      sleep 1
      @broker.stop
      @broker.start
    end
  end

  test "all of it together loses nothing" do
    random = Random.new(seed = Random.new_seed)
    play(:written, "seed #{seed}") do
      sleep random.rand(0.1..0.5)
      case random.rand(4)
      when 0 then @broker.kill.start
      when 1
        @broker.pause
        sleep 0.3
        @broker.go_on
      else @proxy.cut
      end
    end
  end

  # Where a clock stands that somebody has set, in seconds ahead of the true one.
  CLOCKS = [ShiftedClock::HOUR, -2 * ShiftedClock::DAY, 5 * ShiftedClock::YEAR, 0].freeze

  test "a clock that is set changes no lease, no delay and no time to live while the broker runs" do
    start_with_clock
    shelf = open
    shelf.send_batch("shelf", %w[a b c], level: :written, ttl: ShiftedClock::HOUR)
    shelf.send_batch("shelf", %w[later], level: :written, delay: ShiftedClock::HOUR)
    shelf.send_batch("brief", %w[a b], ttl: 1)
    clocks = CLOCKS.cycle
    play(:written, delays: true, ttl: ShiftedClock::HOUR) do
      @clock.ahead(clocks.next)
      sleep 0.3
    end
    @clock.ahead(CLOCKS[2])
    shelf.send_message("shelf", "of the future")
    figures = shelf.queues.to_h { |queue| [queue["name"], queue] }
    assert_equal [0, 0], figures[QUEUE].values_at("expired", "crashed"), figures.to_s
    assert_equal [4, 1, 0], figures["shelf"].values_at("ready", "delayed", "expired"), figures.to_s
    assert_equal 2, figures["brief"]["expired"], figures.to_s
    receiver = shelf.receiver("shelf", credit: 4)
    times = Array.new(4) { receiver.receive(timeout: PATIENCE).tap(&:ack).sent_at.to_i }
    assert_operator times[3] - times[0], :>, 4 * ShiftedClock::YEAR # it is this clock that the broker goes by
  end

  test "a clock that is set between kill -9 and the next start loses nothing, and lets nothing wait for it" do
    start_with_clock
    clocks = [*CLOCKS, 30 * ShiftedClock::DAY].cycle # one more: each is the earlier of two once, and the later
    play(:written, delays: true) do
      @clock.ahead(clocks.next)
      sleep 0.5
      @broker.kill
      @clock.ahead(clocks.next)
      @broker.start
    end
  end

  private

  def start(**options)
    @broker = BrokerProcess.new(*FLAGS, **options)
    @proxy = CuttingProxy.new(@broker.socket)
  end

  def start_with_clock
    reason = ShiftedClock.missing
    skip reason if reason
    @proxy.close
    @broker.close
    @clock = ShiftedClock.new
    start(env: @clock.environment)
  end

  # Sends and receives while the block happens again and again, and then until everything has come out.
  #
  # @param delays [Boolean] some messages wait before they are delivered, and some go back once, to wait
  # @param ttl [Integer, nil] seconds to live, of those that wait
  def play(level, note = "", delays: false, ttl: nil)
    @delays = delays
    threads = senders(level, ttl).map { |sender| Thread.new { sender.call } }
    receivers = Array.new(3) { Thread.new { receive } }
    deadline = now + SECONDS
    happened = 0
    while now < deadline || happened < LEAST
      yield
      happened += 1
    end
    @sending = false
    threads.each { |thread| thread.join(PATIENCE) || flunk("a sender hangs: #{thread.backtrace&.first(5)} #{@queue.result}") }
    deadline = now + PATIENCE
    sleep 0.05 until @queue.missing.zero? || now > deadline
    settle(deadline)
    @receiving = false
    receivers.each { |thread| thread.join(PATIENCE) || flunk("a receiver hangs: #{thread.backtrace&.first(5)}") }
    result = @queue.result
    assert result.kept?, "#{result} #{note}\n#{@broker.log[-2_000..]}"
    assert_operator result.acknowledged.size, :>, 100, result.to_s
    assert_empty @broker.complaints
  end

  # Until the broker has nothing left.
  def settle(deadline)
    client = open
    until client.queues(QUEUE).all? { |queue| queue.values_at("ready", "delayed", "out").all?(&:zero?) }
      flunk "the queue does not run dry: #{client.queues} #{@queue.result}" if now > deadline
      sleep 0.05
    end
    assert_equal [0], client.queues.map { |queue| queue["dead"] }.uniq
  end

  def senders(level, ttl)
    senders = [-> { send_one_by_one(open, level) }, -> { send_in_batches(open, level) }, -> { send_ahead(open, level) }]
    senders << -> { send_ahead(open, level, "later", delay: 0.3, ttl: ttl) } if @delays
    senders
  end

  def send_one_by_one(client, level)
    each_id("one") { |id| client.send_message(QUEUE, id, level: level, timeout: PATIENCE) && @queue.acknowledge(id) }
  end

  def send_in_batches(client, level)
    each_id("batch") do |id|
      ids = [id] + Array.new(4) { |number| @queue.attempt("#{id}-#{number}") }
      client.send_batch(QUEUE, ids, level: level, timeout: PATIENCE).zip(ids) { |receipt, one| @queue.acknowledge(one) if receipt.is_a?(Client::Receipt) }
    end
  end

  def send_ahead(client, level, name = "ahead", **options)
    waiting = []
    each_id(name) do |id|
      waiting << [id, client.send_async(QUEUE, id, level: level, timeout: PATIENCE, **options)]
      finish(*waiting.shift) if waiting.size > 50
    end
    waiting.each { |id, pending| finish(id, pending) }
  end

  def finish(id, pending)
    pending.value(PATIENCE)
    @queue.acknowledge(id)
  rescue Client::Failure
    nil # may have been taken, or not
  end

  def each_id(name)
    number = 0
    while @sending
      id = @queue.attempt("#{name}-#{number += 1}")
      begin
        yield id
      rescue Client::Failure
        sleep 0.05
      end
      sleep 0.001
    end
  end

  def receive
    receiver = open.receiver(QUEUE, credit: 20, lease: 5)
    while @receiving
      delivery = receiver.receive(timeout: 0.2) or next
      @queue.receive(delivery.payload, delivery.id)
      next delivery.release(delay: 0.2) if @delays && delivery.attempt == 1 && delivery.payload.end_with?("7")
      begin
        @queue.free(delivery.payload, delivery.id) if delivery.ack(wait: true)
      rescue Client::Failure
        nil # may be done with, or not
      end
    end
  end

  def open = Client.open("unix:#{@proxy.socket}", open_timeout: PATIENCE).tap { |client| @lock.synchronize { @clients << client } }

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
