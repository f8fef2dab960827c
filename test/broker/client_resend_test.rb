# frozen_string_literal: true

require "test_helper"
require "hikyaku/broker/client"

# What a client sends again over a new connection, and how much of it at once.
class BrokerClientResendTest < Minitest::Test
  Pending = Hikyaku::Broker::Client::Pending

  def setup
    @resend = Hikyaku::Broker::Client::Resend.new
    @lock = Mutex.new
  end

  def pendings(*counts) = counts.map { |count| Pending.new(@lock, count: count) }

  def due
    found = []
    @resend.each_due { |pending| found << pending }
    found
  end

  # A connection that breaks without an answer.
  def break_under(pendings)
    @resend.begin(pendings)
    due
  end

  test "all of it goes at once" do
    all = pendings(1, 40, 1)
    @resend.begin(all)
    assert_equal all, due
    refute_predicate @resend, :waiting?
    assert all.none?(&:waiting)
  end

  test "a connection that breaks before any answer halves what the next one sends, down to one" do
    all = pendings(*[1] * 10)
    assert_equal [10, 5, 2, 1, 1], Array.new(5) { break_under(all).size }
    assert_predicate @resend, :waiting?
    assert_equal [false] + [true] * 9, all.map(&:waiting)
  end

  test "each answer lets one more go, and makes room for another" do
    all = pendings(*[1] * 16)
    5.times { break_under(all) }
    @resend.begin(all)
    sent = due
    grown = []
    while @resend.waiting?
      @resend.answered(sent.size)
      grown << (sent = due).size
    end
    assert_equal [2, 4, 8, 1], grown
  end

  test "an answer lets the next connection send as much as this one" do
    all = pendings(*[1] * 16)
    3.times { break_under(all) }
    @resend.begin(all)
    assert_equal 2, due.size
    @resend.answered(2)
    assert_equal 4, due.size
    @resend.begin(all.drop(2))
    assert_equal 4, due.size
  end

  test "a connection with nothing to send again says nothing of the path" do
    break_under(pendings(1, 1, 1, 1))
    @resend.begin([])
    @resend.begin(all = pendings(*[1] * 8))
    assert_equal 2, due.size
    @resend.answered(2)
    @resend.begin(all.drop(2))
    assert_operator due.size, :>=, 4
  end

  test "messages of one frame go together" do
    all = pendings(1, 1024, 1)
    3.times { break_under(all) }
    12.times { break_under(all) }
    @resend.begin(all)
    assert_equal all.first(1), due
    @resend.answered(1)
    assert_equal all[1, 1], due
    @resend.answered(1024)
    assert_equal all.last(1), due
  end

  test "what comes meanwhile waits its turn, and what is withdrawn is not sent" do
    all = pendings(1, 1)
    2.times { break_under(all) }
    @resend.begin(all)
    due
    later = pendings(1, 1).each { |pending| @resend.push(pending) }
    @resend.delete(later.first)
    @resend.answered(1)
    assert_equal [all.last, later.last], due
  end
end
