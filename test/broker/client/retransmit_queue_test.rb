# frozen_string_literal: true

require "test_helper"
require "hikyaku/broker/client"

# What a client sends again over a new connection, and how much of it at once.
class BrokerClientRetransmitQueueTest < Minitest::Test
  Client = Hikyaku::Broker::Client

  def setup
    @queue = Client::RetransmitQueue.new
    @pending = Client::Pending.new(Mutex.new)
  end

  def requests(*counts) = counts.map { |count| Client::SendRequest.new(@pending, "q", [Client::Message.new("")] * count) }

  def due
    found = []
    @queue.each_due { |request| found << request }
    found
  end

  # A connection that breaks without an answer.
  def break_under(requests)
    @queue.reset(requests)
    due
  end

  test "all of it goes at once" do
    all = requests(1, 40, 1)
    @queue.reset(all)
    assert_equal all, due
    refute_predicate @queue, :any?
    assert all.none?(&:queued)
  end

  test "a connection that breaks before any answer halves what the next one sends, down to one" do
    all = requests(*[1] * 10)
    assert_equal [10, 5, 2, 1, 1], Array.new(5) { break_under(all).size }
    assert_predicate @queue, :any?
    assert_equal [false] + [true] * 9, all.map(&:queued)
  end

  test "each answer lets one more go, and makes room for another" do
    all = requests(*[1] * 16)
    5.times { break_under(all) }
    @queue.reset(all)
    sent = due
    grown = []
    while @queue.any?
      @queue.answered(sent.size)
      grown << (sent = due).size
    end
    assert_equal [2, 4, 8, 1], grown
  end

  test "an answer lets the next connection send as much as this one" do
    all = requests(*[1] * 16)
    3.times { break_under(all) }
    @queue.reset(all)
    assert_equal 2, due.size
    @queue.answered(2)
    assert_equal 4, due.size
    @queue.reset(all.drop(2))
    assert_equal 4, due.size
  end

  test "a connection with nothing to send again says nothing of the path" do
    break_under(requests(1, 1, 1, 1))
    @queue.reset([])
    @queue.reset(all = requests(*[1] * 8))
    assert_equal 2, due.size
    @queue.answered(2)
    @queue.reset(all.drop(2))
    assert_operator due.size, :>=, 4
  end

  test "messages of one frame go together" do
    all = requests(1, 1024, 1)
    3.times { break_under(all) }
    12.times { break_under(all) }
    @queue.reset(all)
    assert_equal all.first(1), due
    @queue.answered(1)
    assert_equal all[1, 1], due
    @queue.answered(1024)
    assert_equal all.last(1), due
  end

  test "what comes meanwhile waits its turn, and what is withdrawn is not sent" do
    all = requests(1, 1)
    2.times { break_under(all) }
    @queue.reset(all)
    due
    later = requests(1, 1).each { |request| @queue.push(request) }
    @queue.delete(later.first)
    @queue.answered(1)
    assert_equal [all.last, later.last], due
  end
end
