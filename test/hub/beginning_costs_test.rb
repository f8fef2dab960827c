# frozen_string_literal: true

require "test_helper"
require "hikyaku/hub/beginning_costs"

class BeginningCostsTest < Minitest::Test
  def setup = @costs = Hikyaku::Hub::BeginningCosts.new

  test "the heaviest way through a beginning is found, whatever came first" do
    [["/books/1/", 7], ["/books/2/", 2], ["/cars/", 3], ["/books/", 10], ["", 5]].each { |beginning, cost| @costs.add(beginning, cost) }
    assert_equal [22, 22, 17, 8, 5], ["", "/boo", "/books/2/3", "/c", "/x"].map { |beginning| @costs.through(beginning) }
    @costs.remove("/books/1/", 7)
    assert_equal 17, @costs.through("/")
  end

  test "it agrees with trying each text, and nothing is left behind" do
    random = Random.new(7)
    texts = %w[a b].repeated_permutation(6).map(&:join)
    live = []
    800.times do
      if live.any? && random.rand < 0.5
        @costs.remove(*live.delete_at(random.rand(live.size)))
      else
        live << [texts.sample(random: random)[0, random.rand(7)], Rational(1 + random.rand(9), 2)]
        @costs.add(*live.last)
      end
      beginning = texts.sample(random: random)[0, random.rand(7)]
      expected = texts.select { |text| text.start_with?(beginning) }.map { |text| live.sum { |prefix, cost| text.start_with?(prefix) ? cost : 0 } }.max
      assert_equal expected, @costs.through(beginning)
    end
    live.each { |prefix, cost| @costs.remove(prefix, cost) }
    assert_empty @costs
  end
end
