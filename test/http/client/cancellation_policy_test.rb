# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client"
require "support/misbehaving"

# What becomes of answers that nobody wants any more, and of what was asked for behind a long one.
class HTTPClientCancellationPolicyTest < Minitest::Test
  Client = Hikyaku::HTTP::Client
  Pipeline = Client::Pipeline
  Connection = Struct.new(:unanswered, :paused, :bytes) do
    def paused? = paused

    # Each of what was asked takes as much.
    def pipeline = Struct.new(:bytes) { def bytes_of(chosen, _mean) = chosen.size * bytes }.new(bytes)
  end
  # One is not another.
  class Exchange
    attr_writer :canceled

    def canceled? = !!@canceled
  end
  PathEstimator = Struct.new(:rate, :round_trip, :answer_bytes)
  private_constant :Client, :Pipeline, :Connection, :Exchange, :PathEstimator

  test "connections are let go, those with the most first, until the rest takes less than two round trips" do
    unwanted = Array.new(6) { Exchange.new }
    wanted = Exchange.new
    few, more, most = Connection.new([unwanted[0]], false, 1_000), Connection.new(unwanted[1, 2] + [wanted], false, 1_000), Connection.new(unwanted[3, 3], false, 1_000)
    link = ->(trip) { PathEstimator.new(1_000.0, trip, 500.0) }
    {3.0 => [], 2.9 => [most], 1.6 => [most], 1.4 => [most, more], 0.6 => [most, more], 0.4 => [most, more, few]}.each do |trip, expected|
      assert_equal expected.map(&:object_id), Client::CancellationPolicy.new([few, more, most], unwanted, link.call(trip)).dear.map(&:object_id), trip
    end
  end

  test "nothing is let go that nobody would notice, nor where it is not known how fast the line is, nor what does not come anyway" do
    exchange = Exchange.new
    dear = ->(bytes, rate, trip, paused: false, unwanted: [exchange]) { Client::CancellationPolicy.new([Connection.new([exchange], paused, bytes)], unwanted, PathEstimator.new(rate, trip, 1.0)).dear.size }
    assert_equal [0, 1], [dear.call(90, 1_000.0, 0.001), dear.call(110, 1_000.0, 0.001)]
    assert_equal [0, 0], [dear.call(1_000, nil, 0.001), dear.call(1_000, 1_000.0, nil)]
    assert_equal 0, dear.call(1_000, 1_000.0, 0.001, paused: true)
    assert_equal 0, dear.call(1_000, 1_000.0, 0.001, unwanted: [])
    exchange.canceled = true
    assert_equal 1, dear.call(1_000, 1_000.0, 0.001, unwanted: [])
  end

  test "what is still to come of an answer is known by its length, or else taken for as much as has come" do
    {"Content-Length: 1000\r\n\r\n#{"x" * 300}" => 700, "Transfer-Encoding: chunked\r\n\r\n12c\r\n#{"x" * 300}\r\n" => 300, "Transfer-Encoding: chunked\r\n\r\n" => 200}.each do |rest, left|
      pipeline = Pipeline.new
      asked = Array.new(3) { |i| exchange(i).tap { |one| pipeline.push(one) } }
      assert_in_delta 600, pipeline.bytes_of(asked, 200.0)
      pipeline.receive("HTTP/1.1 200 OK\r\n#{rest}".b, 0.0) { nil }
      assert_in_delta left + 400, pipeline.bytes_of(asked, 200.0), 100, rest
      assert_in_delta 200, pipeline.bytes_of(asked.last(1), 200.0)
    end
  end

  test "a connection goes that is silent for so long, and where nobody wants what is unanswered" do
    wanted, one, two = Array.new(3) { Exchange.new }
    silent = lambda do |unanswered, rest: 5.0, begun: false, unwanted: [one, two]|
      connection = Struct.new(:unanswered, :pipeline).new(unanswered, Struct.new(:begun?).new(begun))
      connection.define_singleton_method(:rest) { |now| now - 10.0 + rest }
      Client::CancellationPolicy.new([connection], unwanted, PathEstimator.new(nil, nil, nil)).silent(10.0, 5.0).size
    end
    assert_equal [1, 1, 0, 0], [silent.call([one]), silent.call([one, two]), silent.call([one, wanted]), silent.call([])]
    assert_equal [0, 0], [silent.call([one], rest: 4.9), silent.call([one], begun: true)]
    two.canceled = true
    assert_equal 1, silent.call([two], unwanted: [])
  end

  test "what stands behind a long answer, and is asked for elsewhere, does not count as answered behind another" do
    Misbehaving.run(Misbehaving::AsTold.new { |request, _| "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n#{"x" * 300_000}" if request.path == "/long" }) do |server|
      client = Client.new(memory: nil, cache: false, proxy: nil)
      client.get(server.url("/first"))
      assert_equal [200, 200], client.get(server.url("/long"), server.url("/behind")).map(&:status)
      refute_match(/is pipelined/, client.explain(server.url))
      client.close
    end
  end

  private

  def exchange(number)
    listener = Struct.new(:told) do
      def answered(_response) = nil

      def came(_bytes) = nil

      def unfinished = nil
    end
    Client::Exchange.new(Hikyaku::HTTP::Request.new("GET", "http://a.example/#{number}"), listener.new, number: number).tap { |one| one.sent!(0.0) }
  end
end
