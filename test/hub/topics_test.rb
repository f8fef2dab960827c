# frozen_string_literal: true

require_relative "../test_helper"
require "hikyaku/hub/topics"

class TopicsTest < Minitest::Test
  Topics = Hikyaku::Hub::Topics
  HUB = "https://hub.example.com/.well-known/mercure"

  test "a topic that is asked for again is the same object" do
    topics = Topics.new(hub_url: HUB)
    assert_same topics["/a"], topics["/a"]
    assert_predicate topics["/a"].value, :frozen?
  end

  test "ever new topics do not make it grow" do
    topics = Topics.new(hub_url: HUB, max_bytes: 100_000)
    5_000.times { |number| topics["/flood/#{number}"] }
    assert_operator topics.size, :<, 130
    long = "x" * 40_000
    10.times { |number| topics["#{long}#{number}"] }
    assert_operator topics.size, :<, 130, "one that is larger than half of the bytes is not kept"
  end

  test "a topic in use outlives a flood" do
    topics = Topics.new(hub_url: HUB, max_bytes: 100_000)
    kept = topics["/kept"]
    5_000.times do |number|
      topics["/flood/#{number}"]
      topics["/kept"] if (number % 20).zero?
    end
    assert_same kept, topics["/kept"]
  end

  test "what the caller does to its string afterwards changes nothing" do
    topics = Topics.new(hub_url: HUB)
    string = +"/a"
    topic = topics[string]
    string << "b"
    assert_equal "/a", topic.value
    assert_same topic, topics["/a"]
  end

  test "threads may ask at once" do
    topics = Topics.new(hub_url: HUB, max_bytes: 50_000)
    wrong = 4.times.map { |seed|
      Thread.new do
        random = Random.new(seed)
        500.times.reject do
          number = random.rand(100)
          topic = topics["/%62/#{number}"]
          topic.url.pathname == "/%62/#{number}" && !topic.reserved?
        end
      end
    }.flat_map(&:value)
    assert_empty wrong
  end

  test "a hub URL that is none is refused" do
    ["", "/.well-known/mercure", "urn:hub", "http://", "http://a b/"].each do |url|
      assert_raises(Hikyaku::ConfigError, url) { Topics.new(hub_url: url) }
    end
  end

  test "it knows the hub's URL and path" do
    topics = Topics.new(hub_url: "HTTP://Localhost:80/a/../live?x")
    assert_equal "HTTP://Localhost:80/a/../live?x", topics.hub_url
    assert_equal "/live", topics.hub_path
  end
end
