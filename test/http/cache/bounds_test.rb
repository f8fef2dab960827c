# frozen_string_literal: true

require "test_helper"
require_relative "scenario"

# The cache takes no more than it may, whatever comes.
class HTTPCacheBoundsTest < Minitest::Test
  include CacheScenario

  FRESH = "cache-control: max-age=60"
  private_constant :FRESH

  def url(number) = "http://example.com/#{number}"

  def entries = cache.instance_variable_get(:@entries)

  def kept(numbers) = numbers.select { |number| ask(url: url(number)).fresh? }

  test "what was not of use for longest goes first" do
    4.times { |number| answer(FRESH, url: url(number), body: "x" * 1000) }
    another_cache(max_bytes: cache.bytes, max_entry_bytes: cache.bytes / 3)
    4.times { |number| answer(FRESH, url: url(number), body: "x" * 1000) }
    assert_equal [0], kept([0])
    answer(FRESH, url: url(4), body: "x" * 1000)
    assert_equal [0, 2, 3, 4], kept([0, 1, 2, 3, 4])
    answer(FRESH, url: url(5), body: "x" * 500)
    assert_equal [2, 3, 4, 5], kept([0, 1, 2, 3, 4, 5])
  end

  test "what is asked about is of use, too" do
    2.times { |number| answer(FRESH, "etag: \"#{number}\"", url: url(number)) }
    another_cache(max_bytes: cache.bytes, max_entry_bytes: cache.bytes)
    2.times { |number| answer(FRESH, "etag: \"#{number}\"", url: url(number)) }
    assert ask(url: url(0), at: 60).stale?
    answer(FRESH, "etag: \"2\"", url: url(2))
    assert_equal [0, 2], kept([0, 1, 2])
  end

  test "bodies, headers and keys count, and what is stored for itself" do
    empty = answer(FRESH, body: "").entry.bytes
    assert_operator empty, :>, 500
    assert_operator answer(FRESH, body: "x" * 5000).entry.bytes, :>=, empty + 5000
    assert_operator answer(FRESH, "x: #{"y" * 5000}", body: "").entry.bytes, :>=, empty + 5000
    assert_operator answer(FRESH, "vary: x", request: ["x: #{"y" * 5000}"], body: "").entry.bytes, :>=, empty + 5000
    assert_includes empty + 1..empty + 100, answer(FRESH, request: ["authorization: #{"y" * 5000}"], body: "").entry.bytes, "of who asks a digest is kept"
    assert_operator answer(FRESH, url: "#{URL}?#{"y" * 5000}", body: "").entry.bytes, :>=, empty + 5000
  end

  test "one response takes an eighth at most, or what is said, and what it replaces goes all the same" do
    another_cache(max_bytes: 80_000)
    assert answer(FRESH, body: "x" * 8000)
    assert_nil answer(FRESH, body: "x" * 10_000)
    assert_equal [0, 0], [cache.size, cache.bytes]
    another_cache(max_bytes: 80_000, max_entry_bytes: 90_000)
    assert answer(FRESH, body: "x" * 70_000)
    assert_nil answer(FRESH, body: "x" * 80_000)
    assert_nil another_cache(max_bytes: 0).store(method: "GET", url: URL, request_headers: [], status: 200, headers: fields([FRESH]), body: "",
      requested_at: NOW, received_at: NOW)
  end

  test "a 304 that makes a response too large takes it away" do
    another_cache(max_bytes: 80_000)
    answer(FRESH, "etag: \"e\"", body: "x" * 8000)
    assert_equal 8000, not_modified(ask(at: 60), "x: #{"y" * 4000}", at: 60).body.bytesize
    assert_equal [0, 0], [cache.size, cache.bytes]
  end

  test "settings that are no sizes are refused, with their name" do
    [{max_bytes: -1}, {max_bytes: "1"}, {max_bytes: nil}, {max_bytes: 1.5}, {max_entry_bytes: -1}, {max_entry_bytes: "x" * 1000}].each do |settings|
      error = assert_raises(Hikyaku::ConfigError) { another_cache(**settings) }
      assert_includes error.message, settings.keys.first.to_s
      assert_operator error.message.size, :<, 200
    end
  end

  test "hostile fields are bounded, and nothing is raised" do
    huge = "x" * 1_000_000
    ["cache-control: #{huge}", "cache-control: max-age=#{"9" * 1_000_000}", "cache-control: #{"\"\\" * 500_000}", "cache-control: #{"," * 1_000_000}",
      "vary: #{"a," * 500_000}", "vary: #{huge}", "etag: \"#{huge}\"", "age: #{"9" * 1_000_000}", "date: #{huge}", "expires: #{huge}", "last-modified: #{huge}",
      "connection: #{"a," * 100_000}", "cache-control: \xFF\xFE=\"\xFF", "etag: \"\xFF\"", "vary: \xFF", "age: \xFF", "date: \xFF"].each do |line|
      another_cache
      answer(line, "etag: \"e\"")
      answer(FRESH, line)
      found = ask(line, line.b.sub(/\A[\w-]+/, "cache-control"), at: 100)
      not_modified(found, line, at: 100) if found.stale?
      answer(FRESH, request: [line], at: 100)
      assert_operator cache.bytes, :<=, 33_554_432
    end
  end

  test "quotation marks and backslashes without end are read in no time" do
    text = ("\"\\" * 2048)[0, 4096]
    1000.times { answer("cache-control: #{text}") }
    1000.times { answer(FRESH, "vary: x", request: ["x: #{text}"]) }
    assert_equal 1, cache.size
  end

  test "whatever happens, the bytes are those of what is stored, and no more than allowed" do
    random = Random.new(9111)
    another_cache(max_bytes: 40_000)
    stale = []
    3000.times do |time|
      case random.rand(10)
      when 0..4
        answer(*[FRESH, "cache-control: no-cache", "cache-control: no-store"].sample(1, random: random), *["etag: \"#{random.rand(4)}\""].sample(random.rand(2), random: random),
          *["vary: x", "vary: y"].sample(random.rand(2), random: random), url: url(random.rand(20)), at: time, request: ["x: #{random.rand(3)}", "y: #{random.rand(3)}"],
          body: "b" * random.rand(6000), status: [200, 200, 200, 404, 500].sample(random: random))
      when 5..6
        found = ask("x: #{random.rand(3)}", url: url(random.rand(20)), at: time)
        stale << found if found.stale?
      when 7
        found = stale.delete_at(random.rand(stale.size + 1)) or next
        not_modified(found, *["etag: \"#{random.rand(4)}\""].sample(random.rand(2), random: random), at: time)
      when 8 then cache.invalidate(method: "POST", url: url(random.rand(20)), status: 200, headers: [["location", "/#{random.rand(20)}"]])
      when 9 then answer(FRESH, method: "HEAD", url: url(random.rand(20)), at: time)
      end
      stored = (0...20).flat_map { |number| entries[url(number)] }
      assert_equal [stored.sum(&:bytes), stored.size], [cache.bytes, cache.size]
      assert_operator cache.bytes, :<=, 40_000
    end
    assert_operator cache.size, :>, 2
    cache.clear
    assert_equal [0, 0, []], [cache.size, cache.bytes, entries[url(1)]]
  end
end
