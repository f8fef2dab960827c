# frozen_string_literal: true

require "test_helper"
require "hikyaku/broker/client"
require "hikyaku/broker/ruby_engine/producer"

# Numbers of messages over random histories: batches of any size, refusals, connections that break, and brokers that are killed and
# come back without what was in memory alone (docs/protocol.md, section 6).
class BrokerClientSendWindowHistoriesTest < Minitest::Test
  Client = Hikyaku::Broker::Client
  Wire = Hikyaku::Broker::Wire
  Producer = Hikyaku::Broker::RubyEngine::Producer

  # One broker over its lives: what it has, and what it remembers of the numbers.
  class Memory
    # How often it ever took a message, and how often it has it.
    attr_reader :ever, :kept

    def initialize(random, known:)
      @random = random
      @ever = Hash.new(0)
      @kept = Hash.new(0)
      @producer = Producer.new(1, "ann")
      @written = []
      @unwritten = []
      earlier(@random.rand(1..6000)) if known
    end

    def low = @producer.low

    def take(number, message, volatile)
      return :duplicate if @producer.taken?(number)
      return Wire::Code::SEQUENCE if @producer.ahead?(number)
      return Wire::Code::QUEUE_FULL if !@calm && @random.rand < 0.03
      @producer.take(number, volatile: volatile)
      @ever[message] += 1
      @kept[message] += 1
      (volatile ? (@volatile ||= []) : @unwritten) << [number, message]
      nil
    end

    def write
      @written.concat(@unwritten)
      @unwritten.clear
    end

    def calm = @calm = true

    # It is killed: what was on its way to the disk has arrived in part.
    def restart
      arrived = @unwritten.shift(@random.rand(0..@unwritten.size))
      (@unwritten + Array(@volatile)).each { |_, message| @kept[message] -= 1 }
      @written.concat(arrived)
      @unwritten.clear
      @volatile = []
      @producer = Producer.new(1, "ann")
      @written.each { |number, _| @producer.take(number) unless @producer.taken?(number) }
    end

    private

    # Who had the identity before left some numbers out.
    def earlier(count)
      (1..count).each do |number|
        next if number > count - 300 && @random.rand < 0.3
        @producer.take(number)
        @written << [number, :earlier]
      end
    end
  end

  # A request whose frame is what the broker of these tests reads.
  class Request < Client::SendRequest
    attr_reader :first

    def initialize(pending, first, count, volatile)
      super(pending, "q", [Client::Message.new("")] * count)
      @first = first
      @volatile = volatile
      @batch = count > 1
    end

    def frame = [number, @first + offset, count, @volatile, @batch]
  end

  # A client and a broker, step by step.
  class History
    attr_reader :memory, :sent, :ambiguous

    def initialize(random, known:, forgetful:)
      @random = random
      @memory = Memory.new(random, known: known)
      @forgetful = forgetful
      @window = Client::SendWindow.new(numbered: true, reused: known)
      @lock = Mutex.new
      @messages = 0
      @sent = []
      @ambiguous = {}
      connect
    end

    def step
      case @random.rand(1000)
      when 0..1 then restart
      when 2..4 then connect
      when 5..420 then post
      when 421..800 then broker_reads
      else client_reads
      end
    end

    # Everything is answered at last.
    def finish
      @memory.calm
      settle
      5000.times do
        post(1)
        settle if @sent.size % 100 == 0
      end
      settle
    end

    def settle
      100_000.times do
        return if @window.empty?
        broker_reads
        client_reads
      end
      raise "messages wait for ever"
    end

    def restart
      @memory.restart
      connect
    end

    def connect
      @under_way&.each { |_, request| note(request) }
      @under_way = {}
      @requests = []
      @slow = []
      @answers = []
      @window.connected(Wire::Frames::Welcome.new(1, 1, 7, 1, 0, 1 << 20, 0, 1_000_000, 1 << 30, 1, @memory.low)).each { |request| transmit(request) }
    end

    def post(count = (@random.rand < 0.2) ? @random.rand(2..120) : 1, volatile: @random.rand < @forgetful)
      count = 1 unless @window.batches?
      unless @window.fits?(count, count)
        raise "nothing is unanswered, and nothing may be sent" if @window.empty? && count == 1
        return
      end
      first = @messages + 1
      @messages += count
      request = Request.new(Client::Pending.new(@lock), first, count, volatile)
      @sent << [request.pending, first, volatile]
      transmit(@window.add(request))
    end

    def broker_reads
      number, first, count, volatile, batch = @requests.shift
      return write unless number
      refusals = []
      duplicate = false
      count.times do |index|
        trouble = @memory.take(number + index, first + index, volatile)
        duplicate ||= trouble == :duplicate
        refusals << Wire::Frames::Refusal.new(index, trouble, 0) if trouble.is_a?(Integer)
      end
      if !batch && refusals.any?
        @answers << [number, refusals.first.code]
      else
        type = batch ? Wire::Type::SEND_BATCH : Wire::Type::SEND
        (volatile ? @answers : @slow) << Wire::Frames::Ack.new(number, type, 1, count, 1, number, duplicate, refusals)
      end
      write if @random.rand < 0.3
    end

    def client_reads
      case (answer = @answers.shift)
      when nil then return
      when Array
        @under_way.delete(answer.first)
        again = @window.refuse(answer.first, Client::Refused.of(answer.last))
      else
        @under_way.delete(answer.id)
        again = @window.acknowledge(answer)
      end
      again.each { |request| transmit(request) }
    end

    private

    def write
      @memory.write
      @answers.concat(@slow.shift(@slow.size))
    end

    def transmit(request)
      request.transmitted = true
      raise "number #{request.number} has two messages" if @under_way.key?(request.number)
      @under_way[request.number] = request
      @requests << request.frame
    end

    # Its number was in doubt, and its answer is lost: DUPLICATE may mean either.
    def note(request)
      return unless request.doubtful
      request.count.times { |index| @ambiguous[request.first + request.offset + index] = true }
    end
  end

  def check(history)
    history.sent.each do |pending, first, volatile|
      assert_predicate pending, :done?
      results = begin
        Array(pending.value(0))
      rescue Client::Refused => error
        [error]
      end
      results.each_with_index do |result, index|
        message = first + index
        kept = history.memory.kept[message]
        if result.is_a?(Client::Receipt)
          assert_operator history.memory.ever[message], :>=, 1, "message #{message} was acknowledged and never taken"
          assert_operator kept, :>=, 1, "message #{message} was acknowledged and is lost" unless volatile
          assert_operator kept, :<=, 1, "message #{message} is there twice" unless history.ambiguous[message]
        else
          assert_kind_of Client::QueueFull, result
          assert_equal 0, kept, "message #{message} was refused and taken" unless history.ambiguous[message]
        end
      end
    end
  end

  [[false, 0.0], [false, 0.5], [false, 0.95], [false, 1.0], [true, 0.5]].each_with_index do |(known, forgetful), index|
    test "whatever happens every message is taken, and the client goes on: #{(forgetful * 100).round} % in memory alone#{", an identity that was there before" if known}" do
      history = History.new(Random.new((Minitest.seed || 1) + index), known: known, forgetful: forgetful)
      12_000.times { history.step }
      history.finish
      check(history)
    end
  end

  test "whatever is under way when a broker is killed that has forgotten nearly all that its map holds, it is taken, and the client goes on" do
    random = Random.new(Minitest.seed || 1)
    10.times do
      history = History.new(random, known: false, forgetful: 0.3)
      history.memory.calm
      random.rand(4000..4090).times { history.post(1, volatile: true) }
      history.settle
      random.rand(1..4).times { history.post(random.rand(2..120)) }
      random.rand(0..3).times { history.broker_reads }
      history.restart
      random.rand(0..20).times { history.step }
      history.finish
      check(history)
    end
  end

  test "a restart while the lowest number waits for its answer, and those above are forgotten, does not stop the client" do
    history = History.new(Random.new(1), known: false, forgetful: 1.0)
    history.memory.calm
    history.post(1, volatile: false)
    4000.times { history.post(1) }
    4001.times { history.broker_reads }
    4000.times { history.client_reads }
    history.restart
    history.finish
    check(history)
  end
end
