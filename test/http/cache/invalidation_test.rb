# frozen_string_literal: true

require "test_helper"
require_relative "scenario"

# RFC 9111, section 4.4; and what is known of entity tags.
class HTTPCacheInvalidationTest < Minitest::Test
  include CacheScenario

  OTHER = "http://example.com/b?c"
  FOREIGN = "http://example.org/b?c"
  ALL = [CacheScenario::URL, OTHER, FOREIGN].freeze
  private_constant :OTHER, :FOREIGN, :ALL

  def store_all
    another_cache
    ALL.each { |url| answer("cache-control: max-age=60", url: url) }
  end

  def left = ALL.select { |url| ask(url: url).fresh? }

  # After this method, status and headers of an answer these are left.
  ANSWERS = [
    ["POST", 200, [], [OTHER, FOREIGN]], ["PUT", 201, [], [OTHER, FOREIGN]], ["DELETE", 204, [], [OTHER, FOREIGN]], ["PATCH", 303, [], [OTHER, FOREIGN]],
    ["UNHEARD-OF", 200, [], [OTHER, FOREIGN]], ["POST", 399, [], [OTHER, FOREIGN]],
    ["POST", 400, ["location: /b?c"], ALL], ["POST", 500, [], ALL], ["POST", 199, [], ALL], ["GET", 200, ["location: /b?c"], ALL], ["HEAD", 200, [], ALL],
    ["OPTIONS", 200, [], ALL], ["TRACE", 200, [], ALL],
    ["POST", 201, ["location: /b?c"], [FOREIGN]], ["POST", 201, ["location: b?c"], [FOREIGN]], ["POST", 201, ["location: http://EXAMPLE.com:80/b?c#d"], [FOREIGN]],
    ["POST", 200, ["content-location: /b?c"], [FOREIGN]], ["POST", 201, ["location: /x", "content-location: /b?c"], [FOREIGN]],
    ["POST", 201, ["location: /x", "location: /b?c"], [FOREIGN]], ["POST", 201, ["location: #{FOREIGN}"], [OTHER, FOREIGN]],
    ["POST", 201, ["location: //example.org/b?c"], [OTHER, FOREIGN]], ["POST", 201, ["location: https://example.com/b?c"], [OTHER, FOREIGN]],
    ["POST", 201, ["location: http://example.com:81/b?c"], [OTHER, FOREIGN]], ["POST", 201, ["link: /b?c"], [OTHER, FOREIGN]],
    ["POST", 201, ["location: http://["], [OTHER, FOREIGN]], ["POST", 201, ["location: \xFF"], [OTHER, FOREIGN]], ["POST", 201, ["location: "], [OTHER, FOREIGN]],
    ["POST", 201, ["location: mailto:a@b"], [OTHER, FOREIGN]], ["POST", 201, ["location: /#{"x" * 20_000}"], [OTHER, FOREIGN]]
  ].freeze
  private_constant :ANSWERS

  test "an answer to an unsafe method takes away what it may have changed, of the same origin" do
    ANSWERS.each do |method, status, lines, expected|
      store_all
      cache.invalidate(method: method, url: URL, status: status, headers: fields(lines))
      assert_equal expected, left, [method, status, lines.map { |line| line[0, 60] }].inspect
    end
  end

  test "all variants of the URL go, and a fragment does not save them" do
    %w[a b].each { |value| answer("cache-control: max-age=60", "vary: x", request: ["x: #{value}"]) }
    cache.invalidate(method: "POST", url: "#{URL}#part", status: 200, headers: [])
    assert_equal [0, 0], [cache.size, cache.bytes]
  end
end
