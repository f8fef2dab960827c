# frozen_string_literal: true

require "test_helper"
require "objspace"
require "hikyaku/broker/ruby_engine"

# The small parts of the engine in Ruby.
class RubyEnginePartsTest < Minitest::Test
  Engine = Hikyaku::Broker::RubyEngine

  test "a heap gives what has the smallest number" do
    random = Random.new(3)
    heap = Engine::Heap.new
    numbers = Array.new(500) { random.rand(100) }
    numbers.each { |number| heap.push(number, "thing #{number}") }
    heap.keep { |thing| thing != "thing 7" }
    numbers.delete(7)
    assert_equal numbers.size, heap.size
    assert_equal numbers.min, heap.first_key
    assert_equal numbers.sort.map { |number| "thing #{number}" }, Array.new(numbers.size) { heap.shift }
    assert_nil heap.shift
    assert_nil heap.first
  end

  test "a timer wheel gives what is due, never early, and hardly late" do
    random = Random.new(4)
    table = Engine::TimerWheel.new
    things = Array.new(300) { |i| [random.rand * 20, "thing #{i}"] }
    slots = things.to_h { |at, thing| [thing, table.add(at, thing)] }
    gone = things.sample(100, random: random)
    gone.each { |_, thing| table.cancel(slots[thing], thing) }
    left = things - gone
    now = 0.0
    until left.empty?
      now += 0.05
      due = []
      table.expire(now) { |thing| due << thing }
      expected, left = left.partition { |_, thing| due.include?(thing) }
      assert_equal due.size, expected.size
      expected.each { |at, _| assert_includes (now - 0.05 - 0.017)..now, at }
    end
    assert_nil table.next_at
  end

  test "a timer wheel gives no more at a time than it is asked for, and nothing that was cancelled meanwhile" do
    table = Engine::TimerWheel.new
    things = Array.new(10) { |i| "thing #{i}" }
    slots = things.map { |thing| table.add(1.0, thing) }
    seen = []
    table.expire(2.0, most: 4) { |thing| seen << thing }
    assert_equal things.first(4), seen
    table.cancel(slots[5], things[5])
    table.expire(2.0) { |thing| seen << thing }
    assert_equal things - [things[5]], seen
  end

  test "slots that were cancelled are not kept" do
    table = Engine::TimerWheel.new
    20_000.times { |i| table.cancel(table.add(i.to_f, table), table) }
    assert_operator ObjectSpace.reachable_objects_from(table.instance_variable_get(:@order)).grep(Array).map(&:size).max, :<, 300
  end

  test "an output buffer gives what was put in, and what was taken stays as it is" do
    outbox = Engine::OutputBuffer.new
    outbox << +"abc" << +"def"
    assert_equal "abc", outbox.take(3)
    taken = outbox.take(100)
    assert_equal "abcdef", taken
    outbox << "g" * 100_000
    assert_equal "abcdef", taken
    outbox.wrote(2)
    assert_equal "cdef", outbox.take(100)
    outbox.wrote(4)
    all = +""
    until outbox.empty?
      bytes = outbox.take(1000)
      all << bytes
      outbox.wrote(bytes.bytesize)
    end
    assert_equal "g" * 100_000, all
    assert_equal "", outbox.take(5)
  end

  test "an output buffer tells answers from deliveries until they were sent" do
    outbox = Engine::OutputBuffer.new
    outbox << +"abc"
    outbox.push("d" * 100_000)
    outbox << +"ef"
    outbox.push(+"gh")
    assert_equal [100_007, 5], [outbox.size, outbox.answers]
    outbox.wrote(outbox.take(200_000).bytesize)
    assert_equal [4, 2], [outbox.size, outbox.answers]
    assert_equal "efgh", outbox.take(100)
    outbox << +"i"
    outbox.wrote(4)
    assert_equal [1, 1, "i"], [outbox.size, outbox.answers, outbox.take(100)]
    outbox.wrote(1)
    assert_equal [0, 0], [outbox.size, outbox.answers]
  end

  test "what is remembered of a producer is what was taken, and is written as docs/journal.md says" do
    producer = Engine::Producer.new(1, "web")
    [1, 2, 4, 5, 10].each { |number| producer.take(number) }
    low, map = producer.snapshot
    assert_equal [2, "0110 0001"], [low, map.unpack1("b*").scan(/..../).join(" ")]
    again = Engine::Producer.new(1, "web", low: low, map: map)
    assert_equal (0..12).map { |number| producer.taken?(number) }, (0..12).map { |number| again.taken?(number) }
    producer.take(3)
    assert_equal 5, producer.low
  end

  test "numbers of messages in memory alone are left out of what is written, as long as they may come again" do
    producer = Engine::Producer.new(1, "web")
    (1..10).each { |number| producer.take(number, volatile: number == 4) }
    low, map = producer.snapshot
    again = Engine::Producer.new(1, "web", low: low, map: map)
    assert_equal [4], (1..10).reject { |number| again.taken?(number) }
    assert_equal [10, ""], producer.snapshot(all: true)
    (11..5000).each { |number| producer.take(number) }
    assert_equal [5000, ""], producer.snapshot
  end

  test "a producer's map goes on beyond what a journal has left out" do
    producer = Engine::Producer.new(1, "web")
    producer.take(2)
    producer.take(5000)
    assert_equal 5000 - 4096, producer.low
    refute producer.taken?(4999)
    assert producer.taken?(5000)
  end

  test "a permission is a name, or the beginning of names" do
    permission = ->(pattern) { Hikyaku::Broker::Permission.new(pattern, 1) }
    assert permission["mails"].covers?("mails")
    refute permission["mails"].covers?("mails2")
    assert permission["mails*"].covers?("mails2")
    refute permission["mails*"].covers?("mail")
    assert permission["*"].covers?("@web")
    refute permission["web"].covers?("@web")
    [8, -1, nil].each { |rights| assert_raises(ArgumentError) { Hikyaku::Broker::Permission.new("q", rights) } }
  end

  test "levels have names" do
    level = Hikyaku::Broker::Level
    assert_equal [0, 1, 2, 255, 2], [:memory, "written", :synced, nil, 2].map { |name| level.number(name) }
    assert_match(/memory, written, synced/, assert_raises(ArgumentError) { level.number(:disk) }.message)
  end
end
