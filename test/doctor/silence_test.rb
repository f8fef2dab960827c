# frozen_string_literal: true

require "test_helper"
require "support/examination"

# A stream on which nothing is said at all. With a time of its own, which is a constant: not beside other tests.
class DoctorSilenceTest < Minitest::Test
  include Examination

  test "idle: without comments for a long time nobody knows whether a stream is dead" do
    with_usual(1) do
      assert_says :warn, /no comment came/, check("idle", hub(HOME, heartbeat: 0), idle: 1.5)
      assert_says :ok, /with a comment each/, check("idle", hub, idle: 3)
    end
    assert_says :ok, /stays for 1 s\z/, check("idle", hub(HOME, heartbeat: 0), idle: 1)
    assert_says :skip, /--idle 0/, check("idle", hub)
  end

  private

  # As if hubs spoke so often.
  def with_usual(seconds)
    idle = Hikyaku::Doctor::Checks::Idle
    usual = idle.const_get(:USUAL)
    set = ->(value) { idle.send(:remove_const, :USUAL).then { idle.const_set(:USUAL, value) } }
    set.call(seconds)
    yield
  ensure
    set.call(usual)
  end
end
