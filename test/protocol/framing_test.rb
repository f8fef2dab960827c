# frozen_string_literal: true

require "support/protocol_test"

# How updates travel: Mercure draft-08, sections "Subscription", "Publication" (data) and "Server-Sent Events Field
# Injection"; HTML standard, section "Server-sent events".
class Protocol::FramingTest < Protocol::Test
  DATA = {
    "one line" => ["data: one line"], "a\nb" => ["data: a", "data: b"], "a\rb" => ["data: a", "data: b"], "a\r\nb" => ["data: a", "data: b"],
    "a\n\rb" => ["data: a", "data: ", "data: b"], "a\r\n\r\nb" => ["data: a", "data: ", "data: b"], "a\r\r\nb" => ["data: a", "data: ", "data: b"],
    "" => ["data: "], "\n" => ["data: ", "data: "], "\r" => ["data: ", "data: "], "a\n" => ["data: a", "data: "], "\r\na" => ["data: ", "data: a"],
    " leading" => ["data:  leading"], ":comment" => ["data: :comment"], "data: x" => ["data: data: x"],
    "a\nevent: mercure" => ["data: a", "data: event: mercure"], "a\rid: forged" => ["data: a", "data: id: forged"],
    "a\r\n\r\nevent: forged\r\ndata: b\r\n\r\n" => ["data: a", "data: ", "data: event: forged", "data: data: b", "data: ", "data: "],
    "retry: 1\nretry: 2" => ["data: retry: 1", "data: retry: 2"],
    # Not line breaks: these belong to the text.
    "a\u2028b\u2029c\u0085d\vd\fe" => ["data: a\u2028b\u2029c\u0085d\vd\fe"], "a\0b" => ["data: a\0b"], "\u{1F388} 木 é" => ["data: \u{1F388} 木 é"]
  }.freeze

  test "data goes out as one field for each line, split on CR, LF and CRLF (Publication, data; Server-Sent Events Field Injection)" do
    DATA.each do |data, lines|
      stream = follow(topic)
      id = publish(topic, data, type: "t", id: "urn:#{rand}")
      event = stream.next
      assert_equal [id, "t", data.gsub(/\r\n?/, "\n")], event.to_a, data.inspect
      frame = stream.bytes.dup.force_encoding(Encoding::UTF_8).sub(/\A(?::.*\n*)*/, "")
      assert_equal ["event: t", "id: #{id}", *lines].join("\n") + "\n\n", frame, data.inspect
      stream.close
    end
  end

  test "every event has an id (Reconnection)" do
    stream = follow(topic)
    ids = [publish(topic, "a"), publish(topic, "b", id: "urn:b"), publish(topic, "c")]
    assert_equal ids, stream.take(3).map(&:id)
    assert_equal 3, stream.bytes.scan(/^id: /).size
  end

  test "an event without a type has no event field, one without retry no retry field" do
    stream = follow(topic)
    publish(topic, "x")
    stream.next
    refute_match(/^(event|retry)/, stream.bytes)
  end

  test "an event is never cut or mixed with another, however large and however many publish at once" do
    stream = follow(topic)
    sizes = [1, 70_000, 5, 300_000, 12]
    threads = sizes.map { |size| Thread.new { publish(topic, size.to_s.ljust(size, "x")) } }
    threads.each(&:join)
    events = stream.take(sizes.size)
    assert_equal sizes.sort, events.map { |event| event.data.to_i }.sort
    events.each { |event| assert_equal event.data.to_i.to_s.ljust(event.data.to_i, "x"), event.data }
  end

  test "the bytes of a stream are lines of Server-Sent Events and nothing else" do
    stream = subscribe([["match", topic], ["match", "/.well-known/mercure/subscriptions/:a"], ["last_event_id", "urn:unknown"]])
    DATA.each_key { |data| publish(topic, data, retry: "5") }
    stream.until(DATA.keys.last)
    stream.bytes.force_encoding(Encoding::UTF_8).split("\n").each { |line| assert_match(/\A(?:|:.*|(?:event|data|id|retry): ?.*)\z/m, line) }
    assert stream.bytes.valid_encoding?
    refute_includes stream.bytes, "\r"
  end

  test "an id, a type and a retry on the wire are what was published, and no more lines (Server-Sent Events Field Injection)" do
    ["\n", "\r", "\r\n", "\0", "x\nevent: mercure", "x\ndata: forged\n\n", "x\rid: y", "\u0085", "x\u2028"].each do |evil|
      %w[id type retry topic].each do |name|
        stream = follow(topic)
        fields = {"topic" => topic, "data" => "x", "id" => "urn:1"}.map { |key, value| [key, value] }.reject { |key, _| key == name && name != "topic" }
        response = post(fields + [[name, "5#{evil}"]])
        # U+2028 is no control or format character: in an id or a type it is a character like another.
        next assert_equal(200, response.status) if evil.include?("\u2028") && name != "retry"
        assert_problem 400, response, [name, evil].inspect
        publish(topic, "next")
        assert_next "next", stream
        stream.close
      end
    end
  end
end
