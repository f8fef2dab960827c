# frozen_string_literal: true

require "test_helper"
require "hikyaku/log"

class IdIndexTest < Minitest::Test
  def setup = @ids = Hikyaku::Log::IdIndex.new

  test "an id leads to its position until the record is evicted" do
    @ids.add("a", 3)
    assert_equal 3, @ids["a"]
    assert_nil @ids["b"]
    @ids.keep_from(4)
    assert_nil @ids["a"]
    assert_equal 0, @ids.size
  end

  test "a reused id leads to the earliest record that is still there (draft-08, Reconnection)" do
    [1, 5, 9].each { |position| @ids.add("a", position) }
    assert_equal 1, @ids["a"]
    @ids.keep_from(5)
    assert_equal 5, @ids["a"]
    @ids.keep_from(9)
    assert_equal 9, @ids["a"]
    @ids.keep_from(10)
    assert_equal 0, @ids.size
  end

  test "evicting records before it changes nothing" do
    @ids.add("a", 3)
    @ids.keep_from(3)
    assert_equal 3, @ids["a"]
  end

  test "each use of an id costs memory until its record has gone" do
    [1, 2, 3].each { |position| @ids.add("a", position) }
    three = @ids.bytes
    assert_operator three, :>, 300
    @ids.keep_from(2)
    assert_equal three / 3 * 2, @ids.bytes
    @ids.keep_from(4)
    assert_equal 0, @ids.bytes
  end
end
