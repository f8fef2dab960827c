# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client"

# Which connection is to ask what, while others are being opened.
class HTTPClientSchedulerTest < Minitest::Test
  Client = Hikyaku::HTTP::Client
  TRIP = 0.6
  ConnectionPool = Struct.new(:connections, :under_way) do
    def more? = true
  end
  # One that stands, or is being opened for so many seconds; it has brought so many bytes, and was asked so much since it was idle.
  Connection = Struct.new(:opening, :asked, :brought, :batch, :unanswered) do
    def opening? = !opening.nil?

    def usable? = !opening?

    def rest(now) = now - (opening || 0)

    def pipeline = Struct.new(:batch_size).new(batch)

    def load(_) = 0

    def probing = false

    def cautious = false
  end
  private_constant :Client, :TRIP, :ConnectionPool, :Connection

  test "what has a connection of its own that is about to stand does not go behind others" do
    assert_equal [1] * 5, given(requests: 6, standing: 5, opening: [TRIP * 1.01])
  end

  test "what would wait for a connection that takes long goes behind others" do
    assert_equal [2, 1, 1, 1, 1], given(requests: 6, standing: 5, opening: [TRIP * 1.3])
    assert_equal [2, 1, 1, 1, 1], given(requests: 6, standing: 5, opening: [TRIP * 1.01], round_trip: nil)
  end

  test "what there are not connections for is shared by all" do
    assert_equal [2] * 5, given(requests: 12, standing: 5, opening: [TRIP])
    assert_equal [7, 7], given(requests: 14, standing: 2)
  end

  test "no more is asked behind others than there is room for, but what stands idle is asked something" do
    assert_equal [2, 2], given(requests: 20, standing: 2, budget: 6_000, answer: 1_500)
    assert_equal [1, 1], given(requests: 20, standing: 2, budget: 0, answer: 1_500)
  end

  test "others are given what the first connection cannot bring, and it has the rest: the one that brought the most" do
    # 14,600 bytes, of answers that may be half as large as usual.
    way = {rate: 100_000, round_trip: 0.3, answer: 1_460}
    assert_equal [40, 20], given(requests: 60, standing: 2, **way)
    assert_equal [2, 2], given(requests: 4, standing: 2, **way)
    assert_equal 1, place(requests: 1, standing: 2, **way).to_enum(:each).map { |connection, _| connection.brought }.sum
    assert_equal [55, 5], given(requests: 60, standing: 2, asked: 15, **way)
    assert_equal [30, 30], given(requests: 60, standing: 2, asked: 15, **way, rate: 2_000_000)
  end

  # 14,600 bytes, and then twice as many, on each of six connections that are worth it.
  test "before the rate is known, so much is asked as may come in two round trips: by the size of the answers that came, or a small one" do
    unknown = {requests: 200, standing: 1, rate: nil, under_way: 1}
    assert_equal [30], given(**unknown, answer: 8_600)
    assert_equal [128], given(**unknown, answer: nil) # as many as one takes
  end

  test "room is by the usual size of answers, and not by how small they may be" do
    placed = place(requests: 4, standing: 1, answer: 8_000)
    assert_in_delta 32_000, placed.spent
  end

  private

  # @return [Array<Integer>] how many requests each connection that stands is given
  def given(**settings)
    sizes = []
    place(**settings).each { |_, exchanges| sizes << exchanges.size }
    sizes
  end

  def place(requests:, standing:, opening: [], round_trip: TRIP, asked: 0, under_way: 0, budget: Float::INFINITY, answer: 1_500, rate: 1_000_000)
    now = 10.0
    connections = Array.new(standing) { |i| Connection.new(nil, 0, (i == 1) ? 1 : 0, asked, Array.new([asked, 1].min) { exchange(-1) }) } + opening.map { |seconds| Connection.new(now - seconds, 0, 0, 0, []) }
    link = Client::PathEstimator.new("round_trip" => round_trip, **{"rate" => rate, "answer" => answer}.compact)
    waiting = Client::RequestQueue.new
    requests.times { |number| waiting.add(exchange(number)) }
    verdict = Client::PipeliningPolicy.new(nil, now: 0.0)
    placement = Client::Scheduler.new(ConnectionPool.new(connections, under_way), waiting, link: link, verdict: verdict, pipe: true, budget: budget, now: now)
    waiting.hand_out { |exchange| placement.give?(exchange) }
    placement
  end

  def exchange(number) = Client::Exchange.new(Hikyaku::HTTP::Request.new("GET", "http://a.example/#{number}"), nil, number: number)
end
