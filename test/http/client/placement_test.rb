# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client"

# Which connection is to ask what, while others are being opened.
class HTTPClientPlacementTest < Minitest::Test
  Client = Hikyaku::HTTP::Client
  TRIP = 0.6
  Pool = Struct.new(:connections) do
    def under_way = 0

    def more? = true
  end
  # One that stands, or is being opened for so many seconds.
  Connection = Struct.new(:opening, :asked) do
    def opening? = !opening.nil?

    def usable? = !opening?

    def rest(now) = now - (opening || 0)

    def unanswered = []

    def load(_) = 0

    def probing = false

    def cautious = false
  end
  private_constant :Client, :TRIP, :Pool, :Connection

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

  private

  # @return [Array<Integer>] how many requests each connection that stands is given
  def given(requests:, standing:, opening: [], round_trip: TRIP)
    now = 10.0
    connections = Array.new(standing) { Connection.new(nil, 0) } + opening.map { |seconds| Connection.new(now - seconds, 0) }
    link = Client::Link.new("round_trip" => round_trip, "rate" => 1_000_000)
    waiting = Client::Waiting.new
    requests.times { |number| waiting.add(Client::Exchange.new(Hikyaku::HTTP::Request.new("GET", "http://a.example/#{number}"), nil, number: number)) }
    placement = Client::Placement.new(Pool.new(connections), waiting, link: link, verdict: Client::Verdict.new(nil, now: 0.0), pipe: true, now: now)
    waiting.hand_out { |exchange| placement.give?(exchange) }
    sizes = []
    placement.each { |_, exchanges| sizes << exchanges.size }
    sizes
  end
end
