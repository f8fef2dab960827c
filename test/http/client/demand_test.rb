# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client/demand"

class HTTPClientDemandTest < Minitest::Test
  Demand = Hikyaku::HTTP::Client::Demand
  private_constant :Demand

  test "each two requests that are asked at once are worth a connection" do
    {0 => 0, 1 => 1, 2 => 1, 3 => 2, 20 => 10}.each do |count, connections|
      demand = Demand.new
      demand.seen(count)
      assert_equal connections, demand.connections, count.to_s
    end
  end

  test "what was asked at once before is expected again, and fades when it is not" do
    demand = Demand.new
    [3, 20, 7].each { |count| demand.seen(count) }
    assert_equal [10, 0], [demand.connections, demand.record]
    demand.over
    later = Demand.new(demand.record)
    assert_equal [20, 10], [later.record, later.connections]
    expected = Array.new(5) do
      later.seen(1)
      later.over
      later.connections
    end
    assert_equal [5, 3, 1, 1, 1], expected
    later.over
    assert_equal 1, later.record
  end

  test "a record of anything makes one that can be used" do
    {nil => 0, -5 => 0, 10**30 => 1_000, "20" => 0, 2.5 => 0, [] => 0, true => 0}.each { |record, usual| assert_equal usual, Demand.new(record).record, record.inspect }
    demand = Demand.new
    demand.seen(10**9)
    demand.over
    assert_equal 1_000, demand.record
  end
end
