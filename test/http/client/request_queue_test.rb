# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client/transaction"
require "hikyaku/http/client/request_queue"
require "hikyaku/http/request"

class HTTPClientRequestQueueTest < Minitest::Test
  Client = Hikyaku::HTTP::Client
  private_constant :Client

  def setup
    @waiting = Client::RequestQueue.new
    @number = 0
  end

  test "the most urgent goes first, and of the same urgency what was asked for first" do
    add(%w[GET 3], %w[POST 1], %w[GET 1], %w[PUT 2], %w[GET 1])
    assert_equal [2, 3, 5, 4, 1], handed_out { true }
    assert_empty @waiting
  end

  test "what has no place keeps nothing of another kind from going, and its own kind in its order" do
    add(%w[POST 0], %w[GET 1], %w[POST 1], %w[GET 2], %w[PUT 2])
    assert_equal [2, 4, 5], handed_out { |exchange| exchange.request.method != "POST" }
    assert_equal [2, 1], [@waiting.size, @waiting.first.number]
    assert_equal [1], handed_out { |exchange| exchange.number == 1 }
    assert_equal [3], handed_out { true }
  end

  test "each is offered once in a round when there is no place" do
    add(%w[GET 1], %w[GET 1], %w[POST 1], %w[PUT 1], %w[PUT 1])
    offered = []
    @waiting.hand_out { |exchange| (offered << exchange.number).empty? }
    assert_equal [1, 3, 4], offered
    assert_equal 5, @waiting.size
  end

  test "what wants a connection of its own waits with its like" do
    add(%w[GET 1]) { |exchange| exchange.solitary! }
    add(%w[GET 1], %w[POST 1], %w[PUT 1])
    assert_equal [1, 1, 1, 1, 3], [*%i[solitary pipelined unsafe alone].map { |kind| @waiting.count(kind) }, @waiting.count(:solitary, :unsafe, :alone)]
    assert_nil @waiting.take_pipelined(2)
    assert_equal [2], @waiting.take_pipelined(1).map(&:number)
  end

  test "what nobody wants any more is dropped, and all may be taken" do
    add(%w[GET 2], %w[GET 1], %w[POST 0]) { |exchange| exchange.cancel! if exchange.number == 2 }
    @waiting.drop_canceled
    assert_equal [3, 1], @waiting.clear.map(&:number)
    assert_equal [true, nil], [@waiting.empty?, @waiting.first]
  end

  private

  def add(*kinds)
    kinds.each do |method, priority|
      request = Hikyaku::HTTP::Request.new(method, "http://a.example/", priority: Integer(priority), body: (method == "GET") ? nil : "x")
      exchange = Client::Exchange.new(request, nil, number: @number += 1)
      yield exchange if block_given?
      @waiting.add(exchange)
    end
  end

  def handed_out
    taken = []
    @waiting.hand_out { |exchange| yield(exchange).tap { |placed| taken << exchange.number if placed } }
    taken
  end
end
