# frozen_string_literal: true

require "test_helper"
require "hikyaku/hub/timers"

class TimersTest < Minitest::Test
  def setup = @timers = Hikyaku::Hub::Timers.new(granularity: 0.5)

  def due(now)
    [].tap { |things| @timers.expire(now) { |thing| things << thing } }
  end

  test "things come when it is time, never late, and once" do
    @timers.add(10.7, "b")
    @timers.add(10.2, "a")
    @timers.add(20.0, "c")
    assert_equal 10.0, @timers.next_at
    assert_empty due(9.9)
    assert_equal ["a"], due(10.2)
    assert_equal ["b"], due(10.7)
    assert_empty due(19)
    assert_equal 20.0, @timers.next_at
    assert_equal ["c"], due(100)
    assert_nil @timers.next_at
  end

  test "what is cancelled does not come" do
    slots = %w[a b c].map { |thing| [thing, @timers.add(5, thing)] }.to_h
    @timers.cancel(slots["b"], "x")
    thing = slots.keys[1]
    @timers.cancel(slots["b"], thing)
    assert_equal %w[a c], due(5)
    @timers.cancel(slots["a"], "a")
    @timers.cancel(nil, "a")
  end

  test "cancelling the last of the first slot moves the next time on" do
    thing = +"thing"
    slot = @timers.add(5, thing)
    @timers.add(9, +"other")
    @timers.cancel(slot, thing)
    assert_equal 9.0, @timers.next_at
  end

  test "what is added while others come is kept for its time" do
    @timers.add(1, "a")
    @timers.expire(1) { |thing| @timers.add(2, "#{thing} again") }
    assert_equal ["a again"], due(2)
  end
end
