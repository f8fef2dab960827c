# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client/path_estimator"

class HTTPClientRateSamplerTest < Minitest::Test
  RateSampler = Hikyaku::HTTP::Client::RateSampler
  private_constant :RateSampler

  def setup = @flow = RateSampler.new

  test "a steady stream gives its rate once in a round trip" do
    rates = stream(from: 0.0, seconds: 1.2, packet: 1_500, rate: 48_000, round_trip: 0.26)
    assert_equal 4, rates.size
    rates.each { |rate| assert_in_delta 48_000, rate, 500 }
  end

  test "bursts with pauses between them give the rate of the bursts" do
    rates = Array.new(6) { |round| stream(from: round * 0.6, seconds: 0.05, packet: 1_500, rate: 1_250_000, round_trip: 0.6) }.flatten
    assert_operator rates.size, :>=, 4
    rates.each { |rate| assert_in_delta 1_250_000, rate, 20_000 }
  end

  test "the first figure is given when as much came as a new connection brings, if that took long enough" do
    stream(from: 0.0, seconds: 0.1, packet: 1_500, rate: 1_250_000, round_trip: 0.6, first: true) { |rate, now| @first ||= [rate, now] if rate }
    rate, now = @first
    assert_in_delta 1_250_000, rate, 20_000
    assert_in_delta 0.02, now, 0.002
    setup
    assert_empty stream(from: 0.0, seconds: 0.2, packet: 1_500, rate: 48_000, round_trip: 1.0, first: true)
    refute_empty stream(from: 0.2, seconds: 0.2, packet: 1_500, rate: 48_000, round_trip: 1.0, first: true)
  end

  test "what came at the end of a pause was under way meanwhile, and does not count" do
    assert_nil take(0.0, 1_000_000_000)
    assert_nil take(0.0, 1_000_000_000)
    rates = Array.new(20) { |i| take(0.01 * (i + 1), 100) }.compact
    assert_in_delta 10_000, rates.first, 1
    @flow.idle
    assert_nil take(0.2001, 1_000_000_000)
    assert_in_delta 10_000, Array.new(40) { |i| take(0.2001 + 0.01 * (i + 1), 100) }.compact.last, 1
  end

  test "short stretches say nothing, on however short a way" do
    10.times { |i| assert_nil take(i * 0.001, 1_000_000, round_trip: 1e-5) }
    assert_nil take(0.019, 1_000_000, round_trip: 1e-5)
    assert_in_delta 11_000_000 / 0.021, take(0.021, 1_000_000, round_trip: 1e-5), 1_000_000
  end

  test "answers that come singly, one in a round trip, give no rate" do
    assert_empty Array.new(100) { |i| take(i * 0.6, 1_500, round_trip: 0.6) }.compact
  end

  private

  def take(now, bytes, round_trip: 0.1) = @flow.received(bytes, now, round_trip: round_trip)

  def stream(from:, seconds:, packet:, rate:, round_trip:, first: false)
    Array.new((seconds * rate / packet).floor + 1) { |i|
      now = from + i * packet / rate.to_f
      @flow.received(packet, now, round_trip: round_trip, first: first).tap { |figure| yield figure, now if block_given? }
    }.compact
  end
end
