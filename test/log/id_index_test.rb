# frozen_string_literal: true

require "test_helper"
require "hikyaku/log"

class IdIndexTest < Minitest::Test
  def setup = @ids = Hikyaku::Log::IdIndex.new

  test "an id leads to its position until the record is evicted" do
    @ids.add("a", 3)
    assert_equal 3, @ids["a"]
    assert_nil @ids["b"]
    @ids.remove("a", 3)
    assert_nil @ids["a"]
    assert_equal 0, @ids.size
  end

  test "a reused id leads to the earliest record that is still there (draft-08, Reconnection)" do
    [1, 5, 9].each { |position| @ids.add("a", position) }
    assert_equal 1, @ids["a"]
    @ids.remove("a", 1)
    assert_equal 5, @ids["a"]
    @ids.remove("a", 5)
    assert_equal 9, @ids["a"]
    @ids.remove("a", 9)
    assert_equal 0, @ids.size
  end

  test "evicting a record without an id of its own changes nothing" do
    @ids.add("a", 3)
    @ids.remove("#made-by-the-hub", 2)
    @ids.remove("a", 2)
    assert_equal 3, @ids["a"]
  end
end
