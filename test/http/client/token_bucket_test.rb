# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client"

# How fast answers are asked for over connections that have brought much.
class HTTPClientTokenBucketTest < Minitest::Test
  PathEstimator = Hikyaku::HTTP::Client::PathEstimator
  TokenBucket = Hikyaku::HTTP::Client::TokenBucket
  RATE = 2_000_000
  BURST = 100_000
  MUCH = 1_000_000
  private_constant :PathEstimator, :TokenBucket, :RATE, :BURST, :MUCH

  def setup = @pace = TokenBucket.new(PathEstimator.new("round_trip" => 0.6, "rate" => RATE))

  test "no more is asked for in a time than the line carries in it, and somewhat more" do
    asked = 0.0
    100.times do |step|
      room = @pace.budget(7.0 + step * 0.01, MUCH)
      asked += room
      @pace.spend(room, more: true)
    end
    assert_in_delta BURST + 1.1 * RATE * 0.99, asked, 1
  end

  test "what was not asked for in a time may not be asked for later, but for a burst" do
    @pace.budget(7.0, MUCH)
    @pace.spend(BURST, more: false)
    assert_in_delta BURST, @pace.budget(60.0, MUCH)
    slow = TokenBucket.new(PathEstimator.new("round_trip" => 0.6, "rate" => 10_000))
    assert_in_delta 65_536, slow.budget(7.0, MUCH)
  end

  test "what was asked for beyond the room is made up for" do
    @pace.budget(7.0, MUCH)
    @pace.spend(BURST + 22_000, more: true)
    assert_in_delta(-11_000, @pace.budget(7.005, MUCH))
    assert_in_delta 0, @pace.budget(7.01, MUCH), 1
  end

  test "where there was no room it is looked at again soon, and else not" do
    assert_nil @pace.again_at
    @pace.budget(7.0, MUCH)
    @pace.spend(BURST, more: true)
    assert_in_delta 7.01, @pace.again_at
    @pace.budget(7.01, MUCH)
    @pace.spend(10, more: false)
    assert_nil @pace.again_at
  end

  test "servers go slowly by themselves on new connections, a short way has no queue worth it, and an unknown rate is none" do
    near, unknown = PathEstimator.new("round_trip" => 0.01, "rate" => RATE), PathEstimator.new("round_trip" => 0.6)
    [[@pace, 65_535], [TokenBucket.new(near), MUCH], [TokenBucket.new(unknown), MUCH]].each do |pace, brought|
      assert_equal Float::INFINITY, pace.budget(7.0, brought)
      pace.spend(10**9, more: true)
      assert_nil pace.again_at
    end
  end

  test "from the moment that connections have brought much there is a burst" do
    @pace.budget(7.0, 0)
    @pace.spend(1_000, more: true)
    assert_in_delta BURST, @pace.budget(7.1, MUCH)
  end
end
