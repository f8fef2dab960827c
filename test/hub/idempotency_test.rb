# frozen_string_literal: true

require "test_helper"
require "hikyaku/hub/idempotency"

class IdempotencyTest < Minitest::Test
  def setup
    @made = 0
    @known = Hikyaku::Hub::Idempotency.new(limit: 3, seconds: 10)
  end

  def fetch(key, print = "x", now: 0.0) = @known.fetch(key, print, now: now) { "id #{@made += 1}" }

  test "the same key gives the same id and publishes once" do
    assert_equal ["id 1", "id 1", "id 2"], [fetch("a"), fetch("a"), fetch("b")]
    assert_equal 2, @made
  end

  test "a key that comes with something else is refused" do
    fetch("a")
    assert_raises(Hikyaku::KeyReused) { fetch("a", "y") }
  end

  test "keys are forgotten after a while, and the oldest when there are many" do
    fetch("a")
    assert_equal "id 1", fetch("a", now: 9.9)
    assert_equal "id 2", fetch("a", now: 10.1)
    %w[b c d].each { |key| fetch(key, now: 10.2) }
    assert_equal "id 6", fetch("a", now: 10.3)
  end

  test "what failed is not remembered" do
    assert_raises(RuntimeError) { @known.fetch("a", "x", now: 0.0) { raise "full" } }
    assert_equal "id 1", fetch("a")
  end
end
