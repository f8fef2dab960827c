# frozen_string_literal: true

require "test_helper"
require "support/total_queue"

class TotalQueueTest < Minitest::Test
  def setup
    @queue = TotalQueue.new
    sent(1, 2)
  end

  def sent(*ids) = ids.each { |id| @queue.attempt(id) && @queue.acknowledge(id) }

  def received(id, message = "m#{id}")
    @queue.receive(id, message)
    @queue.free(id, message)
  end

  # The lists that are not empty.
  def found = @queue.result.to_h.except(:attempted, :acknowledged, :received).reject { |_, ids| ids.empty? }

  test "what was sent, acknowledged and received once is well" do
    received(1)
    received(2)
    assert_empty found
    assert @queue.result.kept?
  end

  test "what was acknowledged and never received is lost" do
    received(1)
    assert_equal 1, @queue.missing
    assert_equal({lost: [2]}, found)
    refute @queue.result.kept?
  end

  test "what was received as two messages was taken twice, and what nobody sent is unexpected" do
    received(1, "a")
    received(1, "b")
    received(2)
    received(7)
    assert_equal({taken_twice: [1], unexpected: [7]}, found)
    refute @queue.result.kept?
  end

  test "what is delivered again is allowed until its receiver was told that it is done with" do
    @queue.receive(1, "m1")
    received(1)
    received(2)
    assert_equal({repeated: [1]}, found)
    @queue.receive(2, "m2") # from before a cut: it says so late
    assert @queue.result.kept?
    received(2)
    assert_equal [2], found[:returned]
    refute @queue.result.kept?
  end

  test "what nobody was told about may have been taken" do
    received(1)
    received(2)
    @queue.attempt(3)
    @queue.attempt(4)
    received(4)
    assert_equal({recovered: [4]}, found)
    assert @queue.result.kept?
    assert_includes @queue.result.to_s, "4 attempted"
  end
end
