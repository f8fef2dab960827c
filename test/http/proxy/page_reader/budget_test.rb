# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/proxy/page_reader"

# What reading pages may cost.
class HTTPProxyBudgetTest < Minitest::Test
  def setup
    @now = 100.0
  end

  test "it is spent when either of both is" do
    {[1.9, 99] => true, [2.0, 0] => false, [0, 100] => false, [5, 500] => false}.each do |spent, left|
      budget = budget(nil)
      budget.spend(*spent)
      assert_equal left, budget.left?, spent.inspect
      @now += 1_000
      assert_equal left, budget.left?, spent.inspect
    end
  end

  test "what was spent comes back with time, and never more than there was" do
    budget = budget(10)
    @now += 1_000
    budget.spend(3, 100)
    @now += 5
    refute budget.left? # a second and half of the bytes came back
    @now += 1
    assert budget.left?
    @now += 1_000
    budget.spend(1.9, 99)
    assert budget.left?
    budget.spend(0.2, 0)
    refute budget.left?
  end

  private

  def budget(period) = Hikyaku::HTTP::Proxy::PageReader::Budget.new(seconds: 2, bytes: 100, period: period, clock: -> { @now })
end
