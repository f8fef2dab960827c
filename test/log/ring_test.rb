# frozen_string_literal: true

require "test_helper"
require "hikyaku/log"

class RingTest < Minitest::Test
  BLOCK = Hikyaku::Log::Ring.const_get(:BLOCK)

  def ring(capacity = 1_000_000, **options) = Hikyaku::Log::Ring.new(capacity: capacity, **options)

  test "positions are dense and rise from 1" do
    ring = ring()
    assert_equal 0, ring.head
    assert_equal [1, 2, 3], %w[a b c].map { |record| ring.append(record) }
    assert_equal %w[a b c], (1..3).map { |position| ring[position] }
    assert_equal [1, 3], [ring.first, ring.head]
  end

  test "the oldest record goes, and what is retained is counted with what each costs beside its bytes" do
    ring = ring(overhead: 10)
    %w[aaaa bb cccc].each { |record| ring.append(record) }
    assert_equal [40, 3], [ring.bytes, ring.size]
    ring.shift
    assert_equal [2, 3, 26, 2], [ring.first, ring.head, ring.bytes, ring.size]
    assert_equal [nil, "bb", "cccc", nil], (1..4).map { |position| ring[position] }
    2.times { ring.shift }
    assert_equal [4, 3, 0, 0], [ring.first, ring.head, ring.bytes, ring.size]
    assert_equal 4, ring.append("d")
    assert_equal "d", ring[4]
  end

  test "records of all sizes come back whole, wherever blocks end, while the oldest go" do
    ring = ring(3 * BLOCK)
    random = Random.new(1)
    kept = {}
    2_000.times do
      bytes = random.bytes([1, 7, 300, 70_000, BLOCK, BLOCK + 1, 2 * BLOCK - 1, 3 * BLOCK][random.rand(8)])
      bytes = bytes.byteslice(0, random.rand(2).zero? ? bytes.bytesize : 90) # most are small
      parts = [bytes.byteslice(0, bytes.bytesize / 3), bytes.byteslice(bytes.bytesize / 3, bytes.bytesize)]
      kept[ring.append(*parts)] = bytes
      while ring.bytes > 3 * BLOCK && ring.size > 1
        kept.delete(ring.first)
        ring.shift
      end
      assert_equal kept.values.sum(&:bytesize), ring.bytes
      at = kept.keys.sample(random: random)
      assert kept[at] == ring[at], "position #{at}"
    end
    kept.each { |position, bytes| assert bytes == ring[position], "position #{position}" }
  end

  test "what was read stays as it is when its block is used again" do
    ring = ring(BLOCK)
    ring.append("a" * (BLOCK - 10))
    read = ring[1]
    3.times { ring.append("b" * (BLOCK - 10)) && ring.shift }
    assert_equal "a" * (BLOCK - 10), read
    assert_equal "b" * (BLOCK - 10), ring[4]
  end

  test "blocks are used again, and what one large record took is given back" do
    ring = ring(2 * BLOCK)
    blocks = -> { ring.instance_variable_get(:@blocks).size + ring.instance_variable_get(:@spare).size }
    ring.append("x" * (10 * BLOCK))
    assert_equal 10, blocks.call
    100.times { ring.append("y" * (BLOCK / 2)) && (ring.shift while ring.bytes > 2 * BLOCK) }
    assert_operator blocks.call, :<=, 3
  end

  test "a record further on leaves nothing at the positions between, which cost little and go like others" do
    ring = ring()
    ring.append("a")
    ring.leave_out_until(5)
    ring.append("gap")
    assert_equal ["a", nil, nil, nil, "gap"], (1..5).map { |position| ring[position] }
    assert_equal [1, 5, 28], [ring.first, ring.head, ring.bytes]
    ring.append("b" * 50)
    ring.keep_from(5)
    assert_equal [5, 6, 53], [ring.first, ring.head, ring.bytes]
    ring.go_on_at(9)
    assert_equal [9, 8, 0], [ring.first, ring.head, ring.bytes]
    assert_equal 9, ring.append("c")
    assert_equal [nil, "c"], [ring[8], ring[9]]
  end
end
