# frozen_string_literal: true

require "test_helper"
require "support/rails_application"

# Assertions about what was published, in an application's tests.
class TestHelperTest < Minitest::Test
  include Hikyaku::TestHelper

  TOPIC = "https://example.com/books/1"

  test "publishes are counted, with a block and since the test began" do
    assert_no_published
    updates = assert_published(TOPIC) { Hikyaku.publish([TOPIC, "/latest"], {stock: 1}, private: true) }
    assert_equal [[[TOPIC, "/latest"], %({"stock":1}), true]], updates.map { |update| [update.topics, update.data, update.private?] }
    assert_published("/latest")
    assert_published(/books/, count: 2) { 2.times { Hikyaku.publish(TOPIC) } }
    assert_published(TOPIC, count: 3)
    assert_no_published("/other")
    assert_no_published { nil }
  end

  test "each test begins with nothing published" do
    assert_no_published
    Hikyaku.publish(TOPIC)
  end

  test "what was published is listed when it is not what was expected" do
    Hikyaku.publish("/other")
    error = assert_raises(Minitest::Assertion) { assert_published(TOPIC, count: 2) { Hikyaku.publish(["/a", "/b"]) } }
    assert_match(%r{2 updates of "https://example.com/books/1" were expected; published were /a, /b}, error.message)
    error = assert_raises(Minitest::Assertion) { assert_published(TOPIC) { nil } }
    assert_match(/nothing was published/, error.message)
    assert_raises(Minitest::Assertion) { assert_no_published("/other") }
    assert_raises(Minitest::Assertion) { assert_no_published { Hikyaku.publish(TOPIC) } }
  end

  test "updates can be looked at" do
    updates = capture_published(TOPIC) do
      Hikyaku.publish("/other")
      Hikyaku.publish(TOPIC, "x", type: "book", id: "urn:1")
    end
    assert_equal [["x", "book", "urn:1"]], updates.map { |update| [update.data, update.type, update.id] }
  end

  test "no hub is needed, and an update that no hub would take is refused" do
    assert_nil Hikyaku.hub
    assert_equal "urn:1", Hikyaku.publish(TOPIC, id: "urn:1")
    assert_kind_of String, Hikyaku.publish(TOPIC)
    assert_raises(Hikyaku::InvalidTopic) { Hikyaku.publish("a\u0000") }
    assert_equal 0, Hikyaku.disconnect(subject: "user-7")
  end

  test "a hub that this process holds gets the update too" do
    Hikyaku.start(anonymous: true)
    id = Hikyaku.publish(TOPIC)
    assert_equal id, Hikyaku.hub.last_event_id
    assert_published(TOPIC)
  ensure
    Hikyaku.reset
  end

  test "Rails' own test cases have it" do
    require "active_support/test_case"
    assert_includes ActiveSupport::TestCase.ancestors, Hikyaku::TestHelper
    Minitest::Runnable.runnables.delete(ActiveSupport::TestCase)
  end
end
