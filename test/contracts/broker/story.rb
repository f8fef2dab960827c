# frozen_string_literal: true

# A random course of events, the same for the same seed, and what has to hold in any of them: nothing that was acknowledged is lost,
# nothing comes that was not sent, nothing that is done with comes back, and nothing is with two receivers at once. What
# clients hear is kept as a trace without what an engine may number as it likes, so that two engines can be compared.
class BrokerStory
  Wire = Hikyaku::Broker::Wire
  Frames = Wire::Frames

  QUEUES = %w[a b c].freeze
  LEASE = 2000
  # A message as the story knows it.
  Sent = Struct.new(:payload, :level, :acknowledged, :holder, :delivery, :deadline, :freed, :in_doubt)
  # A client with what it has.
  Receiver = Struct.new(:client, :name, :has, :numbers)

  attr_reader :trace, :problems

  # @param contract [BrokerContract] what drives the engine
  # @param seed [Integer]
  # @param storage [Boolean] whether the broker is stopped and killed, too
  # @param without [Array<Symbol>] events that do not happen: those in which engines may differ, to compare them
  def initialize(contract, seed:, storage: false, without: [])
    @contract = contract
    @random = Random.new(seed)
    @storage = storage
    @events = EVENTS - without
    @sent = {}
    @receivers = []
    @trace = []
    @problems = []
    @count = 0
  end

  def run(steps)
    3.times { come }
    steps.times { step }
    finish
    self
  end

  private

  WEIGHTS = {send_one: 30, send_batch: 5, free_one: 25, free_range: 5, nack: 10, touch: 4, hold: 4, credit: 6, wait: 6, come: 2, vanish: 2, leave: 1,
             unsubscribe: 1, restart: 1, crash: 1}.freeze
  EVENTS = WEIGHTS.flat_map { |name, weight| [name] * weight }.freeze

  def step
    name = pick(@events)
    return if !@storage && %i[restart crash].include?(name)
    @trace << [name]
    __send__(name)
    @contract.settle if @storage && @random.rand(3).zero?
    listen
  end

  def pick(list) = list.empty? ? nil : list[@random.rand(list.size)]

  def sender = (@receivers.first || come).client

  def level = @storage ? @random.rand(3) : 0

  def fresh(level)
    payload = "message #{@count += 1}#{"." * @random.rand(50)}"
    @sent[payload] = Sent.new(payload, level, false, nil, nil, nil, false, false)
  end

  def options = {priority: 3 + @random.rand(3), delay: @random.rand(5).zero? ? @random.rand(3000) : 0}

  def send_one
    message = fresh(level)
    note = sender
    id = note.next_id
    (@answers ||= {})[[note, id]] = [message]
    note.say(Wire.send_message(to: pick(QUEUES), payload: message.payload, level: message.level, id: id, **options))
  end

  def send_batch
    chosen = level
    messages = Array.new(1 + @random.rand(8)) { fresh(chosen) }
    note = sender
    id = note.next_id
    (@answers ||= {})[[note, id]] = messages
    note.say(Wire.send_batch(to: pick(QUEUES), messages: messages.map { |message| ["", message.payload] }, level: chosen, id: id, **options))
  end

  def with_delivery
    receiver = pick(@receivers.select { |each| each.has.any? }) or return
    yield receiver, pick(receiver.has.keys)
  end

  def free_one
    with_delivery { |receiver, delivery| free(receiver, delivery, delivery) }
  end

  def free_range
    with_delivery { |receiver, delivery| free(receiver, @random.rand(2).zero? ? 0 : delivery - 3, delivery) }
  end

  def free(receiver, first, last)
    freed = receiver.has.select { |delivery, _| delivery.between?(first, last) }
    freed.each_value { |payload| @sent[payload].in_doubt = true }
    answer = receiver.client.frees(first, last)
    receiver.has.delete_if { |delivery, _| delivery.between?(first, last) }
    return unless answer.is_a?(Frames::Ack) && answer.count > 0
    # A few of them may have been another delivery's by then: what is still this one's was freed.
    freed.each { |delivery, payload| done(@sent[payload], receiver, delivery) }
  end

  def done(message, receiver, delivery)
    message.freed = true if message.holder.equal?(receiver) && message.delivery == delivery && message.deadline > @contract.now
    message.holder = nil if message.freed
  end

  def nack
    with_delivery do |receiver, delivery|
      payload = receiver.has.delete(delivery)
      message = @sent[payload]
      receiver.client.say(Wire.nack(delivery: delivery, kind: @random.rand(10).zero? ? 2 : @random.rand(2), delay: @random.rand(3).zero? ? @random.rand(2000) : 0, reason: "no"))
      message.holder = nil if message.holder.equal?(receiver) && message.delivery == delivery
    end
    listen_to_all
  end

  def touch
    with_delivery do |receiver, delivery|
      answer = receiver.client.touches(delivery)
      message = @sent[receiver.has[delivery]]
      message.deadline = @contract.now + LEASE / 1000.0 if answer.is_a?(Frames::Ack) && message.holder.equal?(receiver) && message.delivery == delivery
    end
  end

  def hold
    with_delivery { |receiver, delivery| receiver.client.holds(delivery) }
  end

  def credit
    receiver = pick(@receivers) or return
    number = pick(receiver.numbers) or return
    receiver.client.say(Wire.credit(subscription: number, credit: @random.rand(6), credit_bytes: @random.rand(2) * (20 + @random.rand(200))))
  end

  def wait
    @contract.wait(@random.rand(1500) / 1000.0)
  end

  def come
    return if @receivers.size >= 5
    name = "client #{@random.rand(100)}"
    return @receivers.first if @receivers.any? { |each| each.name == name }
    receiver = Receiver.new(@contract.client(name), name, {}, [])
    @receivers << receiver
    QUEUES.each_with_index do |queue, index|
      next if @random.rand(3).zero?
      receiver.numbers << index + 1
      receiver.client.say(Wire.subscribe(subscription: index + 1, name: queue, credit: 1 + @random.rand(4), lease: LEASE))
    end
    receiver
  end

  def vanish
    receiver = pick(@receivers) or return
    part_with(receiver)
    receiver.client.vanishes
  end

  def leave
    receiver = pick(@receivers) or return
    receiver.client.say(Wire.drain)
    part_with(receiver)
    receiver.client.vanishes
  end

  def unsubscribe
    receiver = pick(@receivers) or return
    number = receiver.numbers.pop or return
    receiver.client.say(Wire.unsubscribe(subscription: number))
  end

  def part_with(receiver)
    listen
    @receivers.delete(receiver)
    @sent.each_value { |message| message.holder = nil if message.holder.equal?(receiver) }
  end

  def restart
    everybody_leaves
    @contract.restart
  end

  def crash
    everybody_leaves
    @sent.each_value { |message| message.in_doubt = true if message.level.zero? || !message.acknowledged }
    @contract.crash
  end

  def everybody_leaves
    listen_to_all
    @receivers.dup.each { |receiver| part_with(receiver) }
  end

  def listen = listen_to_all

  def listen_to_all
    @receivers.each do |receiver|
      heard = receiver.client.take { true }
      heard.each { |frame| hear(receiver, frame) }
    end
  end

  def hear(receiver, frame)
    case frame
    when Frames::Push then delivered(receiver, frame)
    when Frames::Ack
      (frame.id..frame.last).each { |id| acknowledged(receiver, id) }
      # How answers are drawn together is an engine's own affair.
      @trace << [receiver.name, :ack, frame.request, frame.last - frame.id + 1, frame.level, frame.count, frame.duplicate?] unless frame.request == Wire::Type::SEND
    when Frames::Error then @trace << [receiver.name, :error, frame.code, frame.scope]
    end
  end

  def acknowledged(receiver, id)
    messages = @answers&.delete([receiver.client, id]) or return
    messages.each { |message| message.acknowledged = true }
  end

  def delivered(receiver, push)
    @trace << [receiver.name, :push, push.subscription, push.payload, push.attempt, push.failures, push.crashes, push.priority, push.redelivered?, push.poison_candidate?, push.id & (1 << 36) - 1]
    message = @sent[push.payload]
    return @problems << "#{push.payload} came, and was not sent" unless message
    @problems << "#{push.payload} came back, and was done with" if message.freed
    if message.holder && @receivers.include?(message.holder) && message.deadline > @contract.now
      @problems << "#{push.payload} went to #{receiver.name} while #{message.holder.name} had it"
    end
    message.holder = receiver
    message.delivery = push.id
    message.deadline = @contract.now + LEASE / 1000.0
    receiver.has[push.id] = push.payload
  end

  # Everything that is left goes to one receiver, which frees it.
  def finish
    left = @receivers.dup
    everybody_leaves
    left.each { |receiver| receiver.client.vanishes }
    @contract.settle
    @contract.wait(10)
    last = Receiver.new(@contract.client("last"), "last", {}, [])
    @receivers << last
    QUEUES.each { |queue| last.client.queries(BrokerContract::REPLAY, name: queue) }
    QUEUES.each_with_index { |queue, index| last.client.say(Wire.subscribe(subscription: index + 1, name: queue, credit: 5, lease: 60_000)) }
    1000.times do
      listen
      break if last.has.empty?
      last.has.each_value { |payload| @sent[payload].freed = true if @sent[payload] }
      last.has.clear
      last.client.frees(0, 2**64 - 1)
      @contract.settle if @storage
    end
    lost = @sent.each_value.select { |message| message.acknowledged && !message.freed && !message.in_doubt }
    @problems.concat(lost.map { |message| "#{message.payload} was acknowledged at level #{message.level}, and is lost" })
    remaining = @contract.stats[:messages]
    @problems << "#{remaining} messages are left, and nobody gets them" unless remaining.zero?
  end
end
