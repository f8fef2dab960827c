# frozen_string_literal: true

require "test_helper"
require "json"
require "hikyaku/http/client/path_estimator"

class HTTPClientPathEstimatorTest < Minitest::Test
  PathEstimator = Hikyaku::HTTP::Client::PathEstimator
  private_constant :PathEstimator

  def setup = @link = PathEstimator.new

  test "other connections bring what the first cannot until it brings as much as the line takes" do
    assert_equal Float::INFINITY, @link.relief
    assert_equal 0.0, @link.full
    # Missing of 20,000 bytes: 5,400, for one other; of 100,000: 85,400, then 70,800, then 41,600, for five others.
    {10_000 => 14_600, 20_000 => 14_600, 100_000 => 197_800 / 5}.each do |rate, bytes|
      assert_in_delta bytes, PathEstimator.new("round_trip" => 1.0, "rate" => rate).relief, 1, rate.to_s
    end
    assert_in_delta 50, PathEstimator.new("round_trip" => 0.5, "rate" => 100_000, "answer" => 1_000).full
  end

  test "before anything is known, a little may be under way, on one connection" do
    assert_equal [nil, nil, 1_500.0, 3 * 14_600.0, 1], [@link.round_trip, @link.rate, @link.answer_bytes, @link.window, @link.connections]
    assert_empty @link.record
    assert_predicate @link, :guessed?
  end

  test "the round trip is the shortest that was seen" do
    {[0.26] => 0.26, [0.26, 0.3] => 0.26, [0.3, 0.26] => 0.26, [0.0] => 1e-5, [-1.0] => 1e-5, [0.26, 0.0, 5.0] => 1e-5}.each do |times, shortest|
      setup
      times.each { |seconds| @link.connected(seconds) }
      assert_equal shortest, @link.round_trip, times.inspect
    end
  end

  test "the rate is what comes while something comes, over a round trip at least" do
    @link.connected(0.1)
    came(20_000, from: 0.0, seconds: 0.09)
    assert_nil @link.rate
    came(20_000, from: 0.1, seconds: 0.05)
    assert_in_delta 20_000, @link.rate, 0.1
  end

  test "a server that sends in bursts does not make the line slow" do
    @link.connected(0.6)
    3.times { |round| came(1_000_000, from: round * 0.6, seconds: 0.1) }
    assert_in_delta 1_000_000, @link.rate, 1
    assert_equal 6, @link.connections
  end

  test "the rate is the highest of the last twelve" do
    @link.connected(0.5)
    came(50_000, from: 0.0, seconds: 0.3)
    came(10_000, from: 0.31, seconds: 5.6)
    assert_in_delta 50_000, @link.rate, 0.1
    came(10_000, from: 5.92, seconds: 0.5)
    assert_in_delta 10_000, @link.rate, 0.1
    came(20_000, from: 6.43, seconds: 1.2)
    assert_in_delta 20_000, @link.rate, 1
  end

  test "a line that stood idle says nothing of its rate" do
    @link.connected(0.1)
    came(50_000, from: 0.0, seconds: 0.2)
    @link.idle
    @link.received(1_000_000_000, 0.21)
    came(40_000, from: 0.22, seconds: 0.4)
    assert_in_delta 50_000, @link.rate, 0.1
  end

  test "with the round trip alone, as much may be under way as new connections give in two round trips" do
    @link.connected(0.26)
    assert_equal 3 * 3 * 14_600.0, @link.window
  end

  test "where the first answer and its request take long, one connection is enough until the rate is known" do
    @link.connected(0.4)
    {[0.51, 0.011] => 1, [0.49, 0.011] => 4, [0.51, 0.009] => 4, [0.51, nil] => 4, [0.41, 0.0] => 4}.each do |told, connections|
      @link.begun(*told)
      assert_equal connections, @link.connections, told.inspect
    end
    @link.begun(0.51, 0.011)
    came(1_000_000, from: 0.0, seconds: 1.0)
    assert_equal 6, @link.connections
  end

  test "what the line takes for bytes is known with its rate" do
    assert_equal 0.0, @link.seconds_of(1_000)
    assert_equal 0.25, PathEstimator.new("rate" => 4_000).seconds_of(1_000)
  end

  test "as much may be under way as fills the line, and somewhat more; much more until it is known to be full" do
    known(round_trip: 0.26, rate: 48_000)
    filling = 48_000 * 0.26
    assert_in_delta 2.5 * filling + 1_500, @link.window, 1
    came(48_000, from: 2.0, seconds: 0.1)
    assert_in_delta 2.5 * filling + 1_500, @link.window, 1
    came(48_000, from: 2.11, seconds: 0.6)
    assert_in_delta 1.6 * filling + 1_500, @link.window, 1
  end

  test "on a short way as much may wait as the line takes in a twentieth of a second, and much before that is known" do
    @link.connected(0.001)
    assert_equal 1_000_000.0, @link.window
    known(round_trip: 0.001, rate: 10_000_000)
    assert_in_delta 500_000, @link.window, 1
  end

  test "two answers may be under way at least" do
    known(round_trip: 0.001, rate: 1_000)
    20.times { @link.answered(50_000) }
    assert_in_delta 2 * @link.answer_bytes, @link.window, 0.1
  end

  test "what may be under way grows until the line is full, and then is as much as fills it" do
    @link.connected(0.5)
    windows = Array.new(10) do |round|
      # What is under way comes within a round trip, but no more than the line carries.
      came([@link.window / 0.5, 4_000_000].min.round(-2), from: round * 0.5, seconds: 0.49)
      @link.window
    end
    assert_equal windows[0, 4].uniq.sort, windows[0, 4]
    assert_in_delta 1.6 * 4_000_000 * 0.5 + 1_500, windows.last, 2
  end

  test "a line on which less was asked for than it takes says nothing of how little that is, but of how much" do
    known(round_trip: 1.0, rate: 50_000)
    came(10_000, from: 2.0, seconds: 20.0, limited: true)
    assert_in_delta 50_000, @link.rate, 0.1
    came(80_000, from: 22.0, seconds: 2.0, limited: true)
    assert_in_delta 80_000, @link.rate, 1_000
    setup
    @link.connected(1.0)
    came(10_000, from: 0.0, seconds: 1.5, limited: true)
    assert_in_delta 10_000, @link.rate, 0.1
  end

  # Seconds and bytes a second; connections that are worth opening.
  CONNECTIONS = {
    [0.0001, nil] => 1, [0.05, nil] => 1, [0.15, nil] => 2, [0.26, nil] => 3, [0.6, nil] => 6, [30.0, nil] => 6,
    [0.26, 48_000] => 1, [0.15, 187_500] => 3, [0.15, 170_000] => 2, [0.6, 1_250_000] => 6, [0.001, 100_000_000] => 6, [0.0001, 100_000_000] => 1, [0.6, 100] => 1
  }.freeze
  private_constant :CONNECTIONS

  test "as many connections are worth opening as fill the line while they are new" do
    CONNECTIONS.each do |(round_trip, rate), connections|
      setup
      known(round_trip: round_trip, rate: rate)
      assert_equal connections, @link.connections, [round_trip, rate].inspect
    end
  end

  test "the first answer takes the place of a guess, and is remembered" do
    @link.answered(8_000)
    assert_equal [8_000.0, false, {"answer" => 8_000}], [@link.answer_bytes, @link.guessed?, @link.record]
    again = PathEstimator.new(@link.record)
    refute_predicate again, :guessed?
    again.answered(1_000)
    assert_in_delta 6_600, again.answer_bytes
  end

  test "the mean of answers follows the newest, not too fast" do
    @link.answered(1_500)
    @link.answered(2_500)
    assert_in_delta 1_700, @link.answer_bytes, 0.01
    100.times { @link.answered(10_000) }
    assert_in_delta 10_000, @link.answer_bytes, 1
    100.times { @link.answered(0) }
    assert_in_delta 0, @link.answer_bytes, 1
  end

  test "what is asked first is hoped to be small, but not smaller than answers are" do
    {1_500 => 375, 400 => 200, 100 => 100, 16_000 => 4_000}.each do |mean, hoped|
      assert_in_delta hoped, PathEstimator.new({"answer" => mean}).hoped_bytes, 0.01, mean.to_s
    end
  end

  test "what is known survives as JSON" do
    known(round_trip: 0.26, rate: 48_000)
    came(48_000, from: 2.0, seconds: 0.6)
    @link.answered(2_500)
    again = PathEstimator.new(JSON.parse(JSON.generate(@link.record)))
    assert_in_delta @link.window, again.window, 2
    assert_equal [@link.connections, @link.record], [again.connections, again.record]
  end

  test "a round trip of another day is replaced by the first that is measured, and that by shorter ones" do
    @link = PathEstimator.new({"round_trip" => 0.01})
    [[0.6, 0.6], [0.7, 0.6], [0.5, 0.5]].each do |seconds, kept|
      @link.connected(seconds)
      assert_equal kept, @link.round_trip
    end
  end

  test "a rate of another day is forgotten in the course of time" do
    @link = PathEstimator.new({"round_trip" => 1.0, "rate" => 1_000_000})
    assert_equal 1_000_000.0, @link.rate
    @link.connected(1.0)
    came(10_000, from: 0.0, seconds: 13.5)
    assert_in_delta 10_000, @link.rate, 1
  end

  # Numbers as a file may have them, whoever wrote it.
  RECORDS = [
    {}, {"round_trip" => nil, "rate" => nil, "answer" => nil}, {"round_trip" => 0}, {"round_trip" => -5, "rate" => -5, "answer" => -5}, {"round_trip" => 0, "rate" => 0, "answer" => 0},
    {"round_trip" => 1e300, "rate" => 1e300, "answer" => 1e300}, {"round_trip" => 10**300, "rate" => 10**300, "answer" => 10**300},
    {"round_trip" => Float::INFINITY, "rate" => Float::INFINITY, "answer" => Float::INFINITY}, {"round_trip" => 1e-300, "rate" => 1e-300, "answer" => 1e-300},
    {"rate" => 5}, {"answer" => 5}, {"whatever" => 5}
  ].freeze
  private_constant :RECORDS

  test "a record of any numbers makes a link that can be used" do
    RECORDS.each do |record|
      link = PathEstimator.new(record)
      assert_predicate link.window, :finite?, record.inspect
      assert_operator link.window, :>, 0
      assert_includes 1..6, link.connections
      assert_operator link.answer_bytes, :>=, 64
      link.connected(0.1)
      assert_equal 0.1, link.round_trip unless record.empty?
      JSON.generate(link.record)
    end
  end

  private

  # Packets, one every hundredth of a second.
  def came(rate, from:, seconds:, limited: false)
    (seconds * 100).round.succ.times { |i| @link.received(rate / 100, from + i / 100.0, limited: limited) }
  end

  def known(round_trip:, rate:)
    @link.connected(round_trip)
    came(rate, from: 0.0, seconds: [round_trip, 0.3].max + 0.01) if rate
    @link.idle
  end
end
