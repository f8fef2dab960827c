# frozen_string_literal: true

require "test_helper"
require "support/turbo_application"

# Every way in which turbo-rails broadcasts ends in the hub, and is read from a stream as a page would.
class TurboBroadcastingTest < Minitest::Test
  include TurboApplication

  # Of a record, to its own stream: what is called, and the element that comes.
  TO_ITSELF = {
    ->(m) { m.broadcast_remove } => ["remove", "message_ID", nil],
    ->(m) { m.broadcast_replace } => ["replace", "message_ID", "<p"],
    ->(m) { m.broadcast_update } => ["update", "message_ID", "<p"],
    ->(m) { m.broadcast_append } => ["append", "messages", "<p"],
    ->(m) { m.broadcast_prepend(target: "top") } => ["prepend", "top", "<p"],
    ->(m) { m.broadcast_action(:highlight, target: "x", render: false) } => ["highlight", "x", nil],
    ->(m) { m.broadcast_refresh } => ["refresh", nil, nil],
    ->(m) { m.broadcast_render(partial: "messages/news") } => ["append", "news", "Hello"],
    ->(m) { m.broadcast_replace_later } => ["replace", "message_ID", "<p"],
    ->(m) { m.broadcast_update_later(partial: "messages/shout") } => ["update", "message_ID", "<b"],
    ->(m) { m.broadcast_append_later } => ["append", "messages", "<p"],
    ->(m) { m.broadcast_prepend_later } => ["prepend", "messages", "<p"],
    ->(m) { m.broadcast_action_later(action: :highlight, attributes: {"data-x": "1"}) } => ["highlight", "messages", "<p"],
    ->(m) { m.broadcast_refresh_later } => ["refresh", nil, nil],
    ->(m) { m.broadcast_render_later(partial: "messages/news") } => ["append", "news", "Hello"]
  }.freeze

  # To a stream of its own naming.
  TO_OTHERS = {
    ->(m, *to) { m.broadcast_remove_to(*to) } => ["remove", "message_ID", nil],
    ->(m, *to) { m.broadcast_replace_to(*to) } => ["replace", "message_ID", "<p"],
    ->(m, *to) { m.broadcast_replace_to(*to, attributes: {method: :morph}) } => ["replace", "message_ID", "<p"],
    ->(m, *to) { m.broadcast_update_to(*to, html: "<i>new</i>") } => ["update", "message_ID", "<i>new</i>"],
    ->(m, *to) { m.broadcast_before_to(*to, target: "x") } => ["before", "x", "<p"],
    ->(m, *to) { m.broadcast_after_to(*to, target: "x") } => ["after", "x", "<p"],
    ->(m, *to) { m.broadcast_append_to(*to, target: "x") } => ["append", "x", "<p"],
    ->(m, *to) { m.broadcast_prepend_to(*to) } => ["prepend", "messages", "<p"],
    ->(m, *to) { m.broadcast_refresh_to(*to) } => ["refresh", nil, nil],
    ->(m, *to) { m.broadcast_action_to(*to, action: :highlight) } => ["highlight", "messages", "<p"],
    ->(m, *to) { m.broadcast_render_to(*to, partial: "messages/news") } => ["append", "news", "Hello"],
    ->(m, *to) { m.broadcast_replace_later_to(*to) } => ["replace", "message_ID", "<p"],
    ->(m, *to) { m.broadcast_update_later_to(*to) } => ["update", "message_ID", "<p"],
    ->(m, *to) { m.broadcast_append_later_to(*to) } => ["append", "messages", "<p"],
    ->(m, *to) { m.broadcast_prepend_later_to(*to) } => ["prepend", "messages", "<p"],
    ->(m, *to) { m.broadcast_action_later_to(*to, action: :highlight, target: "x") } => ["highlight", "x", "<p"],
    ->(m, *to) { m.broadcast_refresh_later_to(*to) } => ["refresh", nil, nil],
    ->(m, *to) { m.broadcast_render_later_to(*to, partial: "messages/news") } => ["append", "news", "Hello"]
  }.freeze

  # Without a record, in a controller or a job.
  TO_NAMES = {
    ->(c, *to) { c.broadcast_remove_to(*to, target: "x") } => ["remove", "x", nil],
    ->(c, *to) { c.broadcast_replace_to(*to, target: "x", html: "Hi") } => ["replace", "x", "Hi"],
    ->(c, *to) { c.broadcast_update_to(*to, target: "x", content: "Hi") } => ["update", "x", "Hi"],
    ->(c, *to) { c.broadcast_before_to(*to, target: "x", html: "Hi") } => ["before", "x", "Hi"],
    ->(c, *to) { c.broadcast_after_to(*to, target: "x", html: "Hi") } => ["after", "x", "Hi"],
    ->(c, *to) { c.broadcast_append_to(*to, target: "x", html: "Hi") } => ["append", "x", "Hi"],
    ->(c, *to) { c.broadcast_prepend_to(*to, target: "x", html: "Hi") } => ["prepend", "x", "Hi"],
    ->(c, *to) { c.broadcast_action_to(*to, action: :highlight, target: "x", html: "Hi") } => ["highlight", "x", "Hi"],
    ->(c, *to) { c.broadcast_refresh_to(*to, method: :morph, scroll: :preserve) } => ["refresh", nil, nil],
    ->(c, *to) { c.broadcast_stream_to(*to, content: %(<turbo-stream action="highlight" target="x"></turbo-stream>)) } => ["highlight", "x", nil],
    ->(c, *to) { c.broadcast_replace_later_to(*to, target: "x", html: "Hi") } => ["replace", "x", "Hi"],
    ->(c, *to) { c.broadcast_update_later_to(*to, target: "x", html: "Hi") } => ["update", "x", "Hi"],
    ->(c, *to) { c.broadcast_before_later_to(*to, target: "x", html: "Hi") } => ["before", "x", "Hi"],
    ->(c, *to) { c.broadcast_after_later_to(*to, target: "x", html: "Hi") } => ["after", "x", "Hi"],
    ->(c, *to) { c.broadcast_append_later_to(*to, target: "x", html: "Hi") } => ["append", "x", "Hi"],
    ->(c, *to) { c.broadcast_prepend_later_to(*to, target: "x", html: "Hi") } => ["prepend", "x", "Hi"],
    ->(c, *to) { c.broadcast_action_later_to(*to, action: :highlight, target: "x", html: "Hi") } => ["highlight", "x", "Hi"],
    ->(c, *to) { c.broadcast_refresh_later_to(*to) } => ["refresh", nil, nil]
  }.freeze

  test "a record broadcasts to its own stream, now and later" do
    message = Message.create!(body: "Hello")
    stream = follow(sign(message))
    TO_ITSELF.each do |how, expected|
      how.call(message)
      assert_element expected, received(stream), message, how
    end
  end

  test "a record broadcasts to a stream named after others, now and later" do
    message = Message.create!(body: "Hello")
    stream = follow(sign(@board, :messages))
    TO_OTHERS.each do |how, expected|
      how.call(message, @board, :messages)
      assert_element expected, received(stream), message, how
    end
  end

  test "whoever has no record broadcasts by Turbo::StreamsChannel, now and later" do
    stream = follow(sign("board", "of", :names))
    TO_NAMES.each do |how, expected|
      how.call(Turbo::StreamsChannel, "board", ["of", :names])
      assert_element expected, received(stream), nil, how
    end
  end

  test "what turbo-rails can broadcast is all tried here" do
    tried = [TO_ITSELF, TO_OTHERS, TO_NAMES].flat_map(&:keys).map { |how| File.readlines(__FILE__)[how.source_location.last - 1][/broadcast_\w+/] }
    known = (Turbo::Broadcastable.public_instance_methods(false) + Turbo::Streams::Broadcasts.public_instance_methods(false)).grep(/\Abroadcast_/).map(&:to_s)
    assert_empty known - tried
  end

  test "broadcasts_to tells of a record's whole life (broadcasts_to)" do
    stream = follow(sign(@board))
    message = Announced.create!(body: "Hello", board: @board)
    assert_element ["append", "messages", "Hello"], received(stream), message
    message.update!(body: "Hello again")
    assert_element ["replace", "message_ID", "Hello again"], received(stream), message
    message.destroy!
    assert_element ["remove", "message_ID", nil], received(stream), message
  end

  test "broadcasts names the stream after the model, and then after the record (broadcasts)" do
    list = follow(sign("messages"))
    message = Listed.create!(body: "Hello")
    assert_element ["append", "messages", "Hello"], received(list), message
    own = follow(sign(message))
    message.update!(body: "Hello again")
    assert_element ["replace", "message_ID", "Hello again"], received(own), message
    message.destroy!
    assert_element ["remove", "message_ID", nil], received(own), message
  end

  test "broadcasts_refreshes asks pages to fetch themselves again (broadcasts_refreshes)" do
    list = follow(sign("messages"))
    message = Refreshing.create!(body: "Hello")
    assert_element ["refresh", nil, nil], received(list), message
    own = follow(sign(message))
    message.update!(body: "Hello again")
    assert_element ["refresh", nil, nil], received(own), message
    message.destroy!
    assert_element ["refresh", nil, nil], received(own), message
  end

  test "broadcasts_refreshes_to does so for another's pages (broadcasts_refreshes_to)" do
    stream = follow(sign(@board))
    RefreshingBoard.create!(body: "Hello", board: @board)
    assert_element ["refresh", nil, nil], received(stream), nil
  end

  test "nothing is broadcast while that is suppressed (suppressing_turbo_broadcasts)" do
    stream = follow(sign(@board))
    Announced.suppressing_turbo_broadcasts { Announced.create!(body: "quiet", board: @board).broadcast_append_to(@board) }
    Announced.create!(body: "loud", board: @board)
    assert_match(/loud/, received(stream).to_html)
  end

  test "an update comes with its stream's topic as its type, and to nobody without a grant for that" do
    stream = follow(sign("mine"), sign("also mine"))
    stranger = subscribe(["*", "/turbo/streams/mine"], nil)
    Turbo::StreamsChannel.broadcast_remove_to("mine", target: "1")
    Turbo::StreamsChannel.broadcast_remove_to("also mine", target: "2")
    Turbo::StreamsChannel.broadcast_remove_to("not mine", target: "3")
    Turbo::StreamsChannel.broadcast_remove_to("mine", target: "4")
    assert_equal ["/turbo/streams/mine", "/turbo/streams/also%20mine", "/turbo/streams/mine"], stream.take(3).map(&:type)
    Hikyaku.publish("/public", "over")
    assert_equal "over", stranger.next.data
  end

  test "markup of many lines and of any script comes as it went" do
    content = %(<turbo-stream action="update" target="x"><template>a\nb\r\n\nc: \u2603 é <b>\u{1F600}</b>\n</template></turbo-stream>)
    stream = follow(sign("x"))
    Turbo::StreamsChannel.broadcast_stream_to("x", content: content)
    # Line ends of any kind are one and the same in an event stream.
    assert_equal content.gsub("\r\n", "\n"), stream.next.data
  end

  test "without anything to name the stream after, nothing is broadcast" do
    before = Hikyaku::TestHelper.recorder.updates.size
    [[], [nil], ["", []], [nil, [""]]].each { |streamables| Turbo::StreamsChannel.broadcast_remove_to(*streamables, target: "x") }
    assert_equal before, Hikyaku::TestHelper.recorder.updates.size
  end

  test "a class of the application that broadcasts goes the same way" do
    other = Class.new { extend Turbo::Streams::Broadcasts, Turbo::Streams::StreamName }
    stream = follow(sign("x"))
    other.broadcast_remove_to("x", target: "1")
    assert_equal "1", received(stream)["target"]
  end

  if defined?(ActionCable)
    test "nothing goes through Action Cable, which is there for whatever else uses it" do
      heard, ready = Queue.new, Queue.new
      ActionCable.server.pubsub.subscribe("x", ->(text) { heard << text }, -> { ready << true })
      ready.pop
      stream = follow(sign("x"))
      Turbo::StreamsChannel.broadcast_remove_to("x", target: "1")
      ActionCable.server.broadcast("x", "by cable")
      assert_equal "1", received(stream)["target"]
      assert_equal '"by cable"', heard.pop
      assert_operator Turbo::StreamsChannel, :<, ActionCable::Channel::Base
    end
  else
    test "without Action Cable Turbo::StreamsChannel is there all the same" do
      assert_equal "Turbo::StreamsChannel", Turbo::StreamsChannel.name
      assert_equal "a:b", Turbo::StreamsChannel.verified_stream_name(sign("a", :b))
    end
  end

  private

  def assert_element(expected, element, message, how = nil)
    action, target, content = expected
    place = how && File.readlines(__FILE__)[how.source_location.last - 1].strip
    assert_equal [action, target&.sub("ID", message&.id.to_s)], [element["action"], element["target"]], place
    content ? assert_includes(element.inner_html, content, place) : assert_empty(element.inner_html.gsub(%r{</?template>}, "").strip, place)
  end
end
