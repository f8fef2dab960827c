# frozen_string_literal: true

require "test_helper"
require "support/turbo_application"
require "active_support/test_case"
require "fileutils"
require "hikyaku/rails/turbo/system_test_helper"
require "tmpdir"

# turbo-rails' own assertions, as an application's tests use them.
class TurboTestHelperTest < ActiveSupport::TestCase
  include TurboApplication

  test "broadcasts are counted, with a block and since the test began" do
    assert_no_turbo_stream_broadcasts @board
    assert_turbo_stream_broadcasts(@board, count: 2) do
      Announced.create!(body: "Hello", board: @board).broadcast_remove_to(@board)
    end
    Turbo::StreamsChannel.broadcast_remove_to(@board, target: "x")
    assert_turbo_stream_broadcasts @board, count: 3
    assert_turbo_stream_broadcasts @board
    assert_turbo_stream_broadcasts(@board) { Turbo::StreamsChannel.broadcast_remove_to(@board, target: "y") }
    assert_no_turbo_stream_broadcasts("other") { Turbo::StreamsChannel.broadcast_remove_to("another", target: "x") }
  end

  test "a stream is told by its name, or by what it is named after" do
    Turbo::StreamsChannel.broadcast_remove_to(@board, :messages, target: "x")
    assert_turbo_stream_broadcasts [@board, :messages], count: 1
    assert_turbo_stream_broadcasts "#{@board.to_gid_param}:messages", count: 1
    assert_no_turbo_stream_broadcasts @board
    assert_no_turbo_stream_broadcasts [@board]
  end

  test "what was broadcast can be looked at, element by element" do
    message = Message.create!(body: "Hello")
    message.broadcast_append
    first, second, third = capture_turbo_stream_broadcasts(message) do
      message.broadcast_replace
      Turbo::StreamsChannel.broadcast_stream_to(message, content: %(<turbo-stream action="a"></turbo-stream>\n<turbo-stream action="b"></turbo-stream>))
    end
    assert_equal %w[replace a b], [first, second, third].map { |element| element["action"] }
    assert_equal "message_#{message.id}", first["target"]
    assert_equal "Hello", first.at("template p").text
    assert_equal %w[append replace a b], capture_turbo_stream_broadcasts(message).map { |element| element["action"] }
  end

  test "what is expected and does not come fails, and so does what comes and is not expected" do
    nothing = assert_raises(Minitest::Assertion) { assert_turbo_stream_broadcasts("x") { nil } }
    assert_match(/on "x"/, nothing.message)
    Turbo::StreamsChannel.broadcast_remove_to("x", target: "1")
    assert_raises(Minitest::Assertion) { assert_turbo_stream_broadcasts("x") { nil } }
    assert_match(/Expected: 2\n.*Actual: 1/m, assert_raises(Minitest::Assertion) { assert_turbo_stream_broadcasts("x", count: 2) }.message)
    assert_match(/target=\\"1\\"/, assert_raises(Minitest::Assertion) { assert_no_turbo_stream_broadcasts("x") }.message)
    assert_raises(Minitest::Assertion) { assert_no_turbo_stream_broadcasts("y") { Turbo::StreamsChannel.broadcast_remove_to("y", target: "1") } }
  end

  test "each test begins with nothing broadcast" do
    assert_no_turbo_stream_broadcasts "x"
    Turbo::StreamsChannel.broadcast_remove_to("x", target: "1")
  end

  test "system tests load where turbo-rails has no helper for them yet, and what such a helper lacks itself is told" do
    without = $LOAD_PATH.reject { |folder| File.exist?(File.join(folder.to_s, "turbo/system_test_helper.rb")) }
    refute_equal $LOAD_PATH, without
    assert_nil with_load_path(without) { Hikyaku::Turbo::SystemTestHelper.install }
    Dir.mktmpdir do |folder|
      FileUtils.mkdir(File.join(folder, "turbo"))
      File.write(File.join(folder, "turbo/system_test_helper.rb"), %(require "turbo/not_there"))
      error = assert_raises(LoadError) { with_load_path([folder, *without]) { Hikyaku::Turbo::SystemTestHelper.install } }
      assert_equal "turbo/not_there", error.path
    end
  end

  if Gem.loaded_specs.key?("capybara")
    test "the selector of system tests finds the element by the stream and the class, which stand signed in its name" do
      require "capybara"
      Hikyaku::Turbo::SystemTestHelper.install
      stream = Hikyaku::Turbo::SignedStream.new(@board.to_gid_param, "RoomChannel", {"room" => "1"})
      page = Capybara.string(%(<hikyaku-stream-source channel="RoomChannel" signed-stream-name="#{stream.sign}"></hikyaku-stream-source>) +
        %(<hikyaku-stream-source signed-stream-name="#{sign("x")}"></hikyaku-stream-source>))
      count = ->(**filters) { page.all(:turbo_cable_stream_source, **filters).size }
      assert_equal [1, 1, 0], [@board, "x", "y"].map { |name| count.call(signed_stream_name: name) }
      {"RoomChannel" => 1, :RoomChannel => 1, "Room" => 0, /Room/ => 1, Turbo::StreamsChannel => 1, "Turbo::StreamsChannel" => 1, /Channel/ => 2, true => 2, false => 0, Board => 0}
        .each { |channel, found| assert_equal found, count.call(channel: channel), channel.inspect }
      assert_equal [0, 1], [@board, "x"].map { |name| count.call(signed_stream_name: name, channel: Turbo::StreamsChannel) }
    end
  end

  test "they look at the same for whoever takes turbo-rails' module, and for whoever takes this one" do
    require "turbo/broadcastable/test_helper"
    modules = [Hikyaku::Turbo::TestHelper, *(Turbo::Broadcastable::TestHelper if defined?(ActionCable))]
    Turbo::StreamsChannel.broadcast_remove_to("x", target: "1")
    modules.each do |helper|
      tester = Class.new do
        include Minitest::Assertions
        include helper

        attr_accessor :assertions
      end.new
      tester.assertions = 0
      tester.assert_turbo_stream_broadcasts("x", count: 1)
      assert_equal 1, tester.capture_turbo_stream_broadcasts("x").size
    end
  end

  private

  def with_load_path(folders)
    before = $LOAD_PATH.dup
    $LOAD_PATH.replace(folders)
    yield
  ensure
    $LOAD_PATH.replace(before)
  end
end

if defined?(ActionCable)
  require "action_cable/test_helper"

  # Action Cable's own assertions, as an application's tests use them.
  class CableTestHelperTest < ActiveSupport::TestCase
    include TurboApplication
    include ActionCable::TestHelper

    test "they see what goes by either" do
      assert_no_broadcasts "x"
      removed = %(<turbo-stream action="remove" target="1"></turbo-stream>)
      assert_broadcasts("x", 2) { Turbo::StreamsChannel.broadcast_remove_to("x", target: "1") && ActionCable.server.broadcast("x", {y: 1}) }
      assert_broadcasts "x", 2
      assert_broadcast_on "x", removed
      assert_broadcast_on("x", removed) { Turbo::StreamsChannel.broadcast_remove_to("x", target: "1") }
      assert_equal [removed, {"y" => 2}], capture_broadcasts("x") { Turbo::StreamsChannel.broadcast_remove_to("x", target: "1") && ActionCable.server.broadcast("x", {y: 2}) }
      assert_broadcasts "x", 5
      assert_no_broadcasts("x") { Turbo::StreamsChannel.broadcast_remove_to("y", target: "1") }
      assert_broadcasts "y", 1
    end

    test "what is broadcast and not expected fails, also by a long name, a record's and one that is no text" do
      {"x" => "x", :x => "x", "l" * 200 => "l" * 200, @board.to_gid_param => @board}.each do |name, streamable|
        assert_raises(Minitest::Assertion) { assert_no_broadcasts(name) { Turbo::StreamsChannel.broadcast_remove_to(streamable, target: "1") } }
        assert_raises(Minitest::Assertion) { assert_no_broadcasts(name) }
      end
    end

    test "what was looked at, cleared or recorded anew is not there twice" do
      Turbo::StreamsChannel.broadcast_remove_to("x", target: "1")
      clear_messages "x"
      assert_no_broadcasts "x"
      Turbo::StreamsChannel.broadcast_remove_to("x", target: "1")
      2.times { assert_broadcasts "x", 1 }
      clear_messages "x"
      assert_no_broadcasts "x"
      Turbo::StreamsChannel.broadcast_remove_to("x", target: "2")
      assert_broadcasts "x", 1
      pubsub_adapter.clear
      assert_no_broadcasts "x"
      Hikyaku::TestHelper.recorder.clear
      Turbo::StreamsChannel.broadcast_remove_to("x", target: "3")
      assert_broadcasts "x", 1
    end

    test "what a transaction holds back is not there yet, and what is rolled back never" do
      Board.transaction(joinable: true, requires_new: true) do
        Turbo::StreamsChannel.broadcast_remove_to("x", target: "1")
        assert_no_broadcasts "x"
      end
      assert_broadcasts "x", 1
      Board.transaction(joinable: true, requires_new: true) do
        Turbo::StreamsChannel.broadcast_remove_to("x", target: "1")
        raise ActiveRecord::Rollback
      end
      assert_broadcasts "x", 1
    end
  end
end
