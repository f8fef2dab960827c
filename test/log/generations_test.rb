# frozen_string_literal: true

require "test_helper"
require "hikyaku/log"

class GenerationsTest < Minitest::Test
  def cipher(letter) = Hikyaku::Log::PositionCipher.new(key: letter * 16)

  def setup = @generations = Hikyaku::Log::Generations.new(cipher("a"))

  test "positions are sealed with the key of their generation" do
    @generations.begin(10, cipher("b"))
    @generations.begin(20, cipher("c"))
    {9 => "a", 10 => "b", 19 => "b", 20 => "c", 1000 => "c"}.each { |position, key| assert_equal cipher(key).seal(position), @generations.seal(position) }
    [0, 9, 10, 19, 20, 25].each { |position| assert_equal position, @generations.open(@generations.seal(position), 25) }
  end

  test "an id that was lost is unknown, whatever is at its position now" do
    @generations.begin(10, cipher("b"))
    lost = cipher("a").seal(12)
    assert_nil @generations.open(lost, 30)
    assert_nil @generations.open(cipher("b").seal(9), 30)
    assert_nil @generations.open(cipher("b").seal(31), 30)
    assert_nil @generations.open("no id", 30)
  end
end
