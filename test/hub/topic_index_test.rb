# frozen_string_literal: true

require "test_helper"
require "hikyaku/hub"

class TopicIndexTest < Minitest::Test
  HUB_URL = "https://hub.example.com/.well-known/mercure"
  MATCHERS = [
    ["exact", "*"], ["urlpattern", "*"], ["uri_template", "*"], ["exact", "https://example.com/a"], ["uri_template", "https://example.com/a"],
    ["urlpattern", "https://example.com/a"], ["urlpattern", "https://example.com/:x"], ["urlpattern", "https://example.com/a/:x"], ["urlpattern", "/a"],
    ["urlpattern", "/:x"], ["urlpattern", "*://*/a"], ["urlpattern", "https://*.com/a"], ["uri_template", "https://example.com/{x}"],
    ["uri_template", "{+x}"], ["uri_template", "/{x}"], ["exact", "/a"], ["exact", "木"], ["urlpattern", "https://example.com/*"]
  ].freeze
  TOPICS = ["https://example.com/a", "https://example.com/a/b", "https://example.com/", "/a", "a", "/b", "木", "https://hub.example.com/a", "HTTPS://EXAMPLE.com/a",
    "http://[", "urn:x", "https://other.com/a", "https://example.com/a?q", "https://example.com:443/a"].freeze

  def setup
    @index = Hikyaku::Hub::TopicIndex.new
    @topics = Hikyaku::Hub::Topics.new(hub_url: HUB_URL)
    @feeds = MATCHERS.map { |type, pattern| Hikyaku::Hub::Feed.new(Hikyaku::Hub::Matcher.build(type: type, pattern: pattern, base: HUB_URL), since: 1) }
  end

  def found(topic)
    [].tap { |feeds| @index.each_match(topic) { |feed| feeds << feed } }
  end

  def assert_finds_what_matches(feeds)
    TOPICS.map { |string| @topics[string] }.each do |topic|
      expected = feeds.select { |feed| feed.matcher.match?(topic) }
      assert_equal expected.map(&:matcher).map(&:inspect).sort, found(topic).map(&:matcher).map(&:inspect).sort, topic.value
    end
  end

  test "a topic finds the feeds whose matcher selects it, each once, and no others" do
    @feeds.each { |feed| @index.add(feed) }
    assert_finds_what_matches(@feeds)
  end

  test "what is removed is not found, and the others still are, in whatever order they go" do
    random = Random.new(7)
    10.times do
      left = @feeds.shuffle(random: random).each { |feed| @index.add(feed) }
      until left.empty?
        @index.remove(left.delete_at(random.rand(left.size)))
        assert_finds_what_matches(left) if left.size % 3 == 0
      end
    end
  end
end
