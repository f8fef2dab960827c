# frozen_string_literal: true

require "test_helper"
require "hikyaku/support/generational_cache"

class GenerationalCacheTest < Minitest::Test
  def cache(max_bytes = 1_000) = Hikyaku::Support::GenerationalCache.new(max_bytes) { |key, value| key.bytesize + value.bytesize }

  test "a value is found, made once where there is none, and deleted" do
    one = cache
    assert_nil one["a"]
    assert_equal "made", one.fetch("a") { "made" }
    assert_equal "made", one.fetch("a") { flunk }
    assert_equal "b", one.store("b", "b")
    one.delete("a")
    assert_equal [nil, "b", 1], [one["a"], one["b"], one.size]
    one.delete_if { |value| value == "b" }
    assert_equal 0, one.size
  end

  test "ever new entries do not make it grow, and what is looked up outlives them" do
    one = cache
    one.store("kept", "x")
    5_000.times do |number|
      one.store("key #{number}", "x" * 50)
      assert_equal "x", one["kept"] if number % 5 == 0
    end
    assert_operator one.size, :<, 25
    assert_nil one["key 1"]
    assert one["key 4999"]
  end

  test "an entry that is larger than half of it is not kept, and does not drop others" do
    one = cache
    one.store("small", "x")
    assert_equal "y" * 500, one.fetch("large") { "y" * 500 }
    assert_equal ["x", nil], [one["small"], one["large"]]
  end

  test "an entry that is stored again, deleted, or brought back from the old ones is counted once" do
    one = cache
    one.store("other", "x" * 100)
    200.times { one.store("same", "x" * 100) }
    100.times do
      one.delete("same")
      one.store("same", "x" * 100)
    end
    100.times { one.delete("absent") }
    assert_equal 2, one.size
    one.store("third", "x" * 380)
    assert_equal 3, one.size
    assert one["other"] && one["same"]
    one.store("same", "y")
    assert_equal ["y", 3], [one["same"], one.size]
  end

  test "a value that was computed before it was cleared is not stored" do
    one = cache
    version = one.version
    one.clear
    one.store("a", "b", version: version)
    assert_nil one["a"]
    one.store("a", "b", version: one.version)
    assert_equal "b", one["a"]
  end

  test "it shows no keys and values" do
    one = cache
    one.store("secret", "hidden")
    assert_equal "#<Hikyaku::Support::GenerationalCache 1 entries, at most 1000 bytes>", one.inspect
  end

  test "threads may use it at once" do
    one = cache(400)
    wrong = Array.new(4) do |seed|
      Thread.new do
        random = Random.new(seed)
        500.times.reject { random.rand(40).to_s.then { |key| one.fetch(key) { "value of #{key}" } == "value of #{key}" } }
      end
    end
    assert_empty wrong.flat_map(&:value)
  end
end
