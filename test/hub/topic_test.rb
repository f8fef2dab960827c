# frozen_string_literal: true

require_relative "../test_helper"
require "hikyaku/hub/topic"
require "hikyaku/hub/topics"

class TopicTest < Minitest::Test
  Topic = Hikyaku::Hub::Topic

  ALLOWED = ["a", "", "*", "a topic with spaces", "é", "日本", "\u{1F600}", "\u00A0", "\u2028", "\u2065", "\u{E0002}", "~", "a\\b", "%00"].freeze
  FORBIDDEN = {
    "NUL" => "\u0000", "LF" => "\n", "CR" => "\r", "TAB" => "\t", "last of C0" => "\u001F", "DEL" => "\u007F",
    "first of C1" => "\u0080", "NEL" => "\u0085", "last of C1" => "\u009F", "soft hyphen" => "\u00AD", "Arabic" => "\u061C",
    "added in Unicode 14" => "\u0890", "zero width space" => "\u200B", "RLM" => "\u200F", "RLO" => "\u202E", "word joiner" => "\u2060",
    "FSI" => "\u2068", "BOM" => "\uFEFF", "Kaithi" => "\u{110BD}", "hieroglyphs" => "\u{13430}",
    "added in Unicode 15" => "\u{1343F}", "musical" => "\u{1D173}", "tag" => "\u{E0001}", "last tag" => "\u{E007F}"
  }.freeze

  test "characters that are visible or spaces are allowed (draft-08 Terminology)" do
    ALLOWED.each { |text| assert_equal text, Topic.validate!(text), text.inspect }
  end

  test "control and format characters are refused wherever they stand, and named (draft-08 Terminology)" do
    FORBIDDEN.each do |name, char|
      ["#{char}a", "a#{char}", "é#{char}b"].each do |text|
        error = assert_raises(Hikyaku::InvalidTopic, "#{name} in #{text.inspect}") { Topic.validate!(text) }
        assert_includes error.message, format("U+%04X", char.ord)
        refute_includes error.message, char
        refute Topic.valid_text?(text)
      end
    end
  end

  test "everything that this Ruby knows as Cc or Cf is refused (draft-08 Terminology)" do
    passed = (0..0x10FFFF).lazy.reject { |code| (0xD800..0xDFFF).cover?(code) }.map { |code| [code].pack("U") }
      .select { |char| char.match?(/[\p{Cc}\p{Cf}]/) && Topic.valid_text?(char) }
    assert_empty passed.to_a
  end

  test "exactly the characters of the vectors are refused" do
    ranges = File.readlines(File.expand_path("../vectors/forbidden_characters.txt", __dir__)).grep_v(/^#/)
      .map { |line| Range.new(*line.split.map(&:hex)) }
    scalars = [0..0xD7FF, 0xE000..0x10FFFF].flat_map(&:to_a)
    assert_equal ranges.flat_map(&:to_a), scalars.reject { |code| Topic.valid_text?([code].pack("U")) }
  end

  test "what is not UTF-8 is refused (draft-08 Terminology)" do
    ["\xFF", "a\xC3", "\xED\xA0\x80", "\xC0\x80", "\xF5\x80\x80\x80"].each do |bytes|
      assert_raises(Hikyaku::InvalidTopic, bytes.inspect) { Topic.validate!(bytes) }
      assert_raises(Hikyaku::InvalidTopic, bytes.inspect) { Topic.validate!(bytes.b) }
    end
    assert_raises(Hikyaku::InvalidTopic) { Topic.validate!(nil) }
  end

  test "bytes of UTF-8 are taken as text, and other encodings converted" do
    assert_equal "é", Topic.validate!("é".b)
    assert_equal "é", Topic.validate!("é".encode("ISO-8859-1"))
    assert_equal Encoding::UTF_8, Topic.validate!("a".b).encoding
  end

  test "length is counted in bytes" do
    assert_equal "é" * 8, Topic.validate!("é" * 8, max_bytes: 16)
    error = assert_raises(Hikyaku::LimitExceeded) { Topic.validate!("é" * 8, name: "matcher", max_bytes: 15) }
    assert_includes error.message, "matcher is 16 bytes long"
  end

  RESERVED = [
    "https://example.com/.well-known/mercure", "https://example.com/.well-known/mercure/subscriptions/foo", "http://other.example/.well-known/mercure/x",
    "ftp://x/.well-known/mercure", "foo://x/.well-known/mercure/a", "foo:/.well-known/mercure", "//h/.well-known/mercure", "file:///.well-known/mercure",
    "https://u:p@x:8443/.well-known/mercure?q#f", "/.well-known/mercure", "/.well-known/mercure/", "/.well-known/mercure/subscriptions/x",
    "mercure", "mercure/subscriptions/foo", "./mercure", "../.well-known/mercure", "", "?x", "#x", " ", "/.well-known/%6Dercure", "/.well-known/%6dercure",
    "https://example.com/.well-known/%6Dercure/subscriptions/x", "/.well%2Dknown/me%72cure/x", "/%2Ewell-known/mercure", "%6Dercure/x",
    "https://example.com\\.well-known\\mercure\\x", "\\.well-known\\mercure", "/a/%2e%2E/.well-known/mercure", "/.well-known/./mercure",
    "/.well-known/mercure/../mercure/x", "/x/../.well-known/mercure/%2e", "https:mercure", "HTTPS://EXAMPLE.com/.well-known/mercure",
    "/../../.well-known/mercure", "https:/.well-known/mercure", "/.well-known//mercure", "//hub.example.com//.well-known///mercure//x",
    "/a//../.well-known/mercure/x", "https://example.com/a//b///../../.well-known//mercure", "/.well-known/a//%2e%2E/mercure", "foo://x/a//../.well-known/mercure"
  ].freeze - ["mercure%2", "https:/.well-known/mercure"]
  FREE = [
    "https://example.com/.well-known/mercureXXX", "https://example.com/.well-known/mercure-dashboard", "https://example.com/foo/.well-known/mercure/bar",
    "subscriptions/foo", "bar", "../mercure/x", "urn:example:mercure", "urn:/.well-known/mercure2", "a topic with spaces", "/.well-known/%256Dercure",
    "/.well-known/%252e/mercure", "/.well-known/mercure%2Fx", "/.well-known/Mercure", "mercure%2", "foo://x/.well-known\\mercure", "http://[::1",
    "http://a b/.well-known/mercure", "https://:99999/.well-known/mercure", "https://example.com", "/", "/.well-known", "/.well-known/", "mercurex", "mailto:mercure",
    "https:/.well-known/mercur", "//", "/a/b//../.well-known/mercure", "foo:a//../.well-known/mercure", "https://a//b/../c/.well-known/mercure", "/?a//../.well-known/mercure"
  ].freeze

  test "topics that resolve to the hub's path or below it are reserved (draft-08 Publication)" do
    topics = Hikyaku::Hub::Topics.new(hub_url: "https://hub.example.com/.well-known/mercure")
    RESERVED.each { |topic| assert_predicate topics[topic], :reserved?, topic.inspect }
    FREE.each { |topic| refute_predicate topics[topic], :reserved?, topic.inspect }
  end

  test "another path of the hub is reserved instead (draft-08 Publication)" do
    topics = Hikyaku::Hub::Topics.new(hub_url: "http://localhost:3030/live/h%75b~é")
    ["/live/hub~%C3%A9", "/live/hub%7E%C3%A9/x", "https://x/live/%68ub~é/a", "hub~é"].each { |topic| assert_predicate topics[topic], :reserved?, topic }
    ["/.well-known/mercure", "/live", "/live/hub", "/live/hub~%c3%a9"].each { |topic| refute_predicate topics[topic], :reserved?, topic }
  end

  test "a hub at the root reserves the root alone" do
    topics = Hikyaku::Hub::Topics.new(hub_url: "http://localhost:3030")
    assert_equal "/", topics.hub_path
    assert_predicate topics["/"], :reserved?
    refute_predicate topics["/a"], :reserved?
  end

  test "a topic knows its URL, or that it has none" do
    topics = Hikyaku::Hub::Topics.new(hub_url: "https://hub.example.com/.well-known/mercure")
    assert_equal "/.well-known/books/1", topics["books/1"].url.pathname
    assert_equal "hub.example.com", topics["/a"].url.hostname
    assert_nil topics["http://[::1"].url
  end

  test "topics with the same value are equal" do
    one, other = 2.times.map { Hikyaku::Hub::Topics.new(hub_url: "http://h/")["/a"] }
    assert_equal one, other
    assert_equal 1, [one, other].uniq.size
    refute_equal one, "/a"
  end
end
