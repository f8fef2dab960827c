# frozen_string_literal: true

require "test_helper"
require "json"
require "hikyaku/hub/topics"
require "support/engine_dump"

# What the engine in C makes of a topic by itself is what Ruby makes of it; whatever else it leaves to Ruby.
class TopicDifferentialTest < Minitest::Test
  URL = Hikyaku::URL
  HUBS = ["https://hub.example.com/.well-known/mercure", "http://localhost:3030/live/h%75b~é", "https://user:pa%20ss@hub.example.com:8443/a/b?c", "http://localhost", "http://[::1]:80/.well-known/mercure"].freeze
  WPT = File.expand_path("../vectors/urlpattern/urlpatterntestdata.json", __dir__)

  SPLIT = ["https://example.com", "https://example.com/", "https://example.com/books/1", "http://localhost:3000/x", "https://a-b.c1.example.com:8443/a/b?c=d&e/f?#g/h?i", "/", "/books/1", "/.well-known/mercure/subscriptions/x",
    "/a?b", "/a#b", "/?", "/#", "https://example.com?x", "https://example.com#x", "https://example.com:80/", "http://example.com:443/", "http://example.com:65535/", "http://example.com:1/", "/a//b/", "/...", "/.a/..b/c..",
    "/-._~!$&()*+,;=:@", "/A/Z?-._~!$&()*+,;=:@/?#-._~!$&()*+,;=:@/?", "https://#{"a" * 63}.com/", "https://#{"abcdefgh." * 27}com/", "https://1.2.3.a4/", "https://0x7f.com/"].freeze
  # Also where Ruby would find what C could have found: when in doubt, C asks.
  ASKED = ["", "*", "books/1", "Books", "urn:isbn:1", "//example.com/a", "/\\example.com", "\\a", " /a", "/a ", "/a\n", "/a\tb", "/a b", "/é", "/%41", "/a'b", "/a|b", "/a^b", "/a`b", "/a{b}", "/a[b]", "/a\"b", "/a<b", "/a\\b",
    "/a?b'c", "/a?b%20", "/a#b`c", "/a#b#c", "/.", "/..", "/./", "/../a", "/a/.", "/a/..", "/a/./b", "/a/../b", "/.?x", "/a/..#x", "https://example.com/..", "HTTPS://example.com/", "https://EXAMPLE.com/", "https:/example.com/", "https:example.com", "https:///example.com/",
    "https://", "https:///", "https://.com/", "https://example..com/", "https://example.com./", "https://1.2.3.4/", "https://0x7f.1/", "https://example.0x1/", "https://example.1/", "https://a.0x/", "https://-a.com/", "https://a-.com/", "https://a--b.com/", "https://xn--a/", "https://xn--fa-hia.de/",
    "https://a_b.com/", "https://[::1]/", "https://u@example.com/", "https://u:p@example.com/", "https://example.com:/", "https://example.com:443/", "http://example.com:80/", "https://example.com:0/", "https://example.com:08/", "https://example.com:65536/", "https://example.com:99999999999/",
    "https://example.com:8a/", "https://example.com:80a", "https://example.com\\a", "https://#{"a" * 64}.com/", "https://#{"abcdefgh." * 28}com/", "ftp://example.com/a", "ws://example.com/", "httpsx://example.com/", "http", "https", "http:", "http:/", "http://", "/a\x00", "/a\x7F", "/\xFF"].freeze

  def setup = @engine = EngineDump.new("topic")

  test "topics of the usual forms are split by the engine, and as Ruby splits them" do
    answers = assert_agreement(HUBS.first, SPLIT)
    assert_equal SPLIT.size, answers.compact.size, SPLIT.zip(answers).reject(&:last).map(&:first).inspect
  end

  test "what may not be canonical is left to Ruby" do
    HUBS.each { |hub| assert_empty ASKED.zip(assert_agreement(hub, ASKED)).select(&:last).map(&:first), hub }
  end

  test "a topic below the path of a hub that is reached without http is left to Ruby" do
    assert_equal [nil], assert_agreement("foo://hub/a", ["/b"])
  end

  test "all strings of the tests for URL patterns are split as Ruby splits them" do
    strings = strings_of(JSON.parse(File.read(WPT).gsub(/(?<!\\)\\u[dD][89a-fA-F]\h\h/, "\uFFFD"))).uniq
    topics = strings.flat_map { |string| [string, "/#{string}", "https://example.com/#{string}", "https://#{string}/", "https://example.com/?#{string}", "/##{string}", "http://a:#{string}/"] }
    assert_operator topics.size, :>, 2_500
    assert_operator HUBS.sum { |hub| assert_agreement(hub, topics).compact.size }, :>, 3_000
  end

  PIECES = ["https://", "http://", "a.com", "xn--", "1.2.3.4", "0x1", "-", "--", ".", "..", "/", "//", "/.", "/..", "\\", "%2e", "%", "a", "B", ":80", ":443", ":8080", ":0", ":99999", ":65535", "@", "?", "#", "é", " ", "^", "'", "\"", "`",
    "{", "|", "~", ";=", "[", "]", "\t", "*", "!$&()+,", "1", "_", "\u00AD", "\u3002", ".well-known/mercure", "/live/hub~%C3%A9"].freeze

  test "random topics are split as Ruby splits them" do
    random = Random.new(4)
    topics = Array.new(30_000) do
      string = Array.new(1 + random.rand(6)) { PIECES[random.rand(PIECES.size)] }.join
      ["", "https://a.com/", "https://a.com", "/", "http://a.b-c.d1:8080/"][random.rand(5)] + string
    end
    assert_operator assert_agreement(HUBS[0], topics).compact.size, :>, 3_000
  end

  test "topics of the usual forms with a few bytes changed are split as Ruby splits them" do
    random = Random.new(5)
    HUBS.each do |hub|
      topics = Array.new(8_000) do
        topic = SPLIT[random.rand(SPLIT.size)].b
        (1 + random.rand(3)).times { change(topic, random) }
        topic.force_encoding(Encoding::UTF_8)
      end
      assert_operator assert_agreement(hub, topics).compact.size, :>, 1_000
    end
  end

  private

  def change(topic, random)
    at = random.rand(topic.bytesize + 1)
    byte = (random.rand(4) == 0) ? random.rand(256).chr : "./:?#-0aA@%\\x1~"[random.rand(15)]
    case random.rand(3)
    when 0 then topic.insert(at, byte)
    when 1 then topic[at, 1] = byte
    else topic[at, 1] = ""
    end
  end

  def strings_of(data)
    case data
    when String then [data]
    when Array then data.flat_map { |each| strings_of(each) }
    when Hash then data.flat_map { |key, each| [key, *strings_of(each)] }
    else []
    end
  end

  # What the engine made of the topics, as lists of components, nil where it asks. Each is what Ruby makes of it.
  def assert_agreement(hub, topics)
    known = Hikyaku::Hub::Topics.new(hub_url: hub)
    url = known.base
    answers = @engine.ask([*url.components, url.origin, Hikyaku::Hub::Topic.comparable_path(url), *topics])
    assert_equal topics.size, answers.size
    topics.zip(answers).map do |topic, answer|
      kind, reserved, *parts = answer.split(/ /, -1)
      next if kind == "unknown"

      parts = parts.map { |hex| [hex].pack("H*") }
      ruby = known[topic]
      slow = URL.parse_slowly(topic, base: url)
      assert slow, topic
      assert_equal [*slow.components, slow.origin].map(&:b), parts, topic
      assert_equal [*ruby.url.components, ruby.url.origin].map(&:b), parts, topic
      assert_equal [ruby.reserved? ? "reserved" : "free", topic], [reserved, topic]
      parts
    end
  end
end
