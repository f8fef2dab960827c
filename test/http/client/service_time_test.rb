# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client"

# Whether a server takes so long for an answer that it should work on several at once.
class HTTPClientServiceTimeTest < Minitest::Test
  Exchange = Struct.new(:sent_at, :begun_at)
  private_constant :Exchange

  def setup = @service = Hikyaku::HTTP::Client::ServiceTime.new

  test "the first answer tells already, because after a page all its images are asked for at once" do
    refute @service.slow?(0.001)
    answer(0.02)
    assert @service.slow?(0.001)
  end

  test "what goes on on the way is no work" do
    answer(0.3, round_trip: 0.28)
    refute @service.slow?(0.28)
    answer(0.3, round_trip: nil)
    assert @service.slow?(nil)
  end

  test "one that was slow and is not any more is not slow, after some answers" do
    answer(0.05)
    assert_equal 8, (1..).find { answer(0.001) || !@service.slow?(nil) }
  end

  test "what has no times says nothing" do
    @service.answered(Exchange.new(nil, 1.0), nil)
    @service.answered(Exchange.new(1.0, nil), nil)
    refute @service.slow?(nil)
  end

  private

  def answer(seconds, round_trip: 0.0)
    @service.answered(Exchange.new(5.0, 5.0 + seconds), round_trip)
    nil
  end
end
