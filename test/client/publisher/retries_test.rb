# frozen_string_literal: true

require "test_helper"
require "hikyaku/client/publisher/retries"

class PublisherRetriesTest < Minitest::Test
  R = Hikyaku::Publisher::Retries

  def retries(now: 0.0, random: 1.0, **settings)
    @now = now
    @pauses = []
    R.new(clock: -> { @now }, random: Struct.new(:rand).new(random), sleep: lambda { |seconds|
      @pauses << seconds
      @now += seconds
    }, **settings)
  end

  test "pauses double, and end with the number of attempts" do
    schedule = retries(limit: 4, within: 100, first_pause: 0.1)
    results = Array.new(5) { schedule.again? }
    assert_equal [true, true, true, true, false], results
    assert_equal [0.1, 0.2, 0.4, 0.8], @pauses
  end

  test "chance takes up to half of a pause" do
    retries(limit: 1, within: 100, first_pause: 1, random: 0.0).again?
    assert_equal [0.5], @pauses
  end

  test "what the hub asks for is waited for, if there is so much time" do
    schedule = retries(limit: 9, within: 10)
    assert schedule.again?(at_least: 6)
    refute schedule.again?(at_least: 6)
    assert schedule.again?(at_least: 4)
    assert_equal [6, 4], @pauses
  end

  test "time that the attempts themselves took counts" do
    schedule = retries(limit: 9, within: 10)
    @now = 10.5
    refute schedule.again?
    assert_empty @pauses
  end

  # RFC 9110 section 10.2.3.
  test "Retry-After is read as seconds or as a date, and anything else as nothing" do
    now = Time.httpdate("Fri, 20 Nov 2026 10:00:00 GMT")
    {"0" => 0.0, "120" => 120.0, "Fri, 20 Nov 2026 10:01:30 GMT" => 90.0, "Fri, 20 Nov 2026 09:00:00 GMT" => 0.0}.each do |value, seconds|
      assert_equal seconds, R.seconds(value, now: now), value
    end
    [nil, "", "-1", "1.5", "soon", "1e9", "99999999999999999999", " 3", "3\n"].each { |value| assert_nil R.seconds(value, now: now), value.inspect }
  end
end
