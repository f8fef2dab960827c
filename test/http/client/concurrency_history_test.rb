# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client/path_estimator"

class HTTPClientConcurrencyHistoryTest < Minitest::Test
  ConcurrencyHistory = Hikyaku::HTTP::Client::ConcurrencyHistory
  private_constant :ConcurrencyHistory

  test "each request that is asked at once is worth a connection" do
    demand = ConcurrencyHistory.new
    [0, 1, 20, 3].zip([0, 1, 20, 20]) do |count, connections|
      demand.seen(count)
      assert_equal connections, demand.connections, count.to_s
    end
  end

  test "what was asked at once before is expected again, and fades when it is not" do
    demand = ConcurrencyHistory.new
    [3, 20, 7].each { |count| demand.seen(count) }
    assert_equal [20, 0], [demand.connections, demand.record]
    demand.over
    later = ConcurrencyHistory.new(demand.record)
    assert_equal [20, 20], [later.record, later.connections]
    expected = Array.new(5) do
      later.seen(1)
      later.over
      later.connections
    end
    assert_equal [10, 5, 2, 1, 1], expected
    later.over
    assert_equal 1, later.record
  end

  test "a record of anything makes one that can be used" do
    {nil => 0, -5 => 0, 10**30 => 1_000, "20" => 0, 2.5 => 0, [] => 0, true => 0}.each { |record, usual| assert_equal usual, ConcurrencyHistory.new(record).record, record.inspect }
    demand = ConcurrencyHistory.new
    demand.seen(10**9)
    demand.over
    assert_equal 1_000, demand.record
  end
end
