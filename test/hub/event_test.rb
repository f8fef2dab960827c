# frozen_string_literal: true

require "test_helper"
require "hikyaku/hub/event"

class EventTest < Minitest::Test
  def encode(...) = Hikyaku::Hub::Event.encode(...)

  test "an event is its type, retry, id and data, and an empty line" do
    assert_equal "event: note\nretry: 5\nid: urn:1\ndata: x\n\n", encode(id: "urn:1", data: "x", type: "note", retry_after: 5)
    assert_equal "id: 1\ndata: x\n\n", encode(id: "1", data: "x")
    assert_equal "retry: 0\nid: 1\ndata: x\n\n", encode(id: "1", data: "x", retry_after: 0)
  end

  test "every line break of the data begins a data field (draft-08, Server-Sent Events Field Injection)" do
    {
      "a\nb" => %w[a b], "a\rb" => %w[a b], "a\r\nb" => %w[a b], "a\n\nb" => ["a", "", "b"], "\n" => ["", ""],
      "a\n" => ["a", ""], "a\r\n\rb" => ["a", "", "b"], "a\nid: evil\nevent: mercure" => ["a", "id: evil", "event: mercure"]
    }.each do |data, lines|
      assert_equal "id: 1\n#{lines.map { |line| "data: #{line}\n" }.join}\n", encode(id: "1", data: data), data.inspect
    end
  end

  test "an event without data is still an event" do
    assert_equal "id: 1\ndata: \n\n", encode(id: "1", data: "")
  end

  test "bytes are binary and frozen, whatever the text" do
    frame = encode(id: "é", data: "日本")
    assert_equal Encoding::BINARY, frame.encoding
    assert frame.frozen?
    assert_equal "id: é\ndata: 日本\n\n".b, frame
  end

  test "what is not kept carries no id" do
    assert_equal "data: {}\n\n", Hikyaku::Hub::Event.transient(data: "{}")
    assert_equal "event: a\ndata: {}\n\n", Hikyaku::Hub::Event.transient(data: "{}", type: "a")
  end
end
