# frozen_string_literal: true

require "test_helper"
require "hikyaku/log"

class RingTest < Minitest::Test
  def ring(capacity) = Hikyaku::Log::Ring.new(capacity: capacity)

  test "positions are dense and rise from 1" do
    ring = ring(100)
    assert_equal 0, ring.head
    assert_equal [1, 2, 3], %w[a b c].map { |record| ring.append(record) }
    assert_equal %w[a b c], (1..3).map { |position| ring[position] }
    assert_equal [1, 3], [ring.first, ring.head]
  end

  test "the oldest records go when there are too many bytes, and are named" do
    ring = ring(10)
    gone = []
    %w[aaaa bbbb cccc dddd].each { |record| ring.append(record) { |evicted, position| gone << [evicted, position] } }
    assert_equal [["aaaa", 1], ["bbbb", 2]], gone
    assert_equal [3, 4, 8, 2], [ring.first, ring.head, ring.bytes, ring.size]
    assert_nil ring[2]
    assert_equal "cccc", ring[3]
    assert_nil ring[5]
  end

  test "the newest record stays even when it is larger than the ring" do
    ring = ring(10)
    ring.append("a")
    ring.append("b" * 50)
    assert_equal [2, 2, 1], [ring.first, ring.head, ring.size]
    ring.append("c")
    assert_equal [3, 3, 1], [ring.first, ring.head, ring.bytes]
  end
end
