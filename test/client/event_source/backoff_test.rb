# frozen_string_literal: true

require "test_helper"
require "hikyaku/client/event_source/backoff"

class EventSourceBackoffTest < Minitest::Test
  def backoff(random: 0.0, **settings)
    Hikyaku::EventSource::Backoff.new(retry_seconds: 3, max_seconds: 60, random: Struct.new(:rand).new(random), **settings)
  end

  test "failures double the pause up to the limit, and a stream that opens begins anew" do
    subject = backoff
    assert_equal [3, 6, 12, 24, 48, 60, 60], Array.new(7) { subject.next_pause }
    subject.reset
    assert_equal 3, subject.next_pause
  end

  test "chance adds up to a quarter, and takes nothing away" do
    assert_equal 3.75, backoff(random: 1.0).next_pause
  end

  test "the server's time holds, also beyond the limit of failures, but not for ever and not without a pause" do
    subject = backoff
    {120 => 120, 0 => 0.1, 1e12 => 3600, 0.5 => 0.5}.each do |asked, pause|
      subject.retry_seconds = asked
      subject.reset
      assert_equal pause, subject.next_pause, asked
    end
  end

  test "a Retry-After is waited for, within an hour" do
    assert_equal 90, backoff.next_pause(at_least: 90)
    assert_equal 3, backoff.next_pause(at_least: 1)
    assert_equal 3600, backoff.next_pause(at_least: 1e9)
  end

  test "a long night without a network overflows nothing" do
    subject = backoff
    2000.times { subject.next_pause }
    assert_equal 60, subject.next_pause
  end
end
