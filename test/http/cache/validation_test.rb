# frozen_string_literal: true

require "test_helper"
require_relative "scenario"

# RFC 9111, sections 3.2 and 4.3: asking whether what is stored is still right.
class HTTPCacheValidationTest < Minitest::Test
  include CacheScenario

  FRESH = "cache-control: max-age=60"
  LANGUAGES = %w[en de].freeze
  private_constant :FRESH, :LANGUAGES

  def answer_in_languages(**more)
    LANGUAGES.each { |language| answer(FRESH, "vary: accept-language", "etag: \"#{language}\"", request: ["accept-language: #{language}"], body: language, **more) }
  end

  def validators(*lines, at: 60, **more) = ask(*lines, at: at, **more).then { |found| found.stale? ? found.validators : kind(found) }

  test "what is stale is asked about by its tag and its date" do
    answer(FRESH, "etag: \"e\"", "last-modified: #{date(-9)}")
    found = ask(at: 60)
    assert_equal :stale, kind(found)
    assert_equal [["if-none-match", "\"e\""], ["if-modified-since", date(-9)]], found.validators
    assert [found.validators, *found.validators, *found.validators.flatten].all?(&:frozen?)
    assert_empty ask(at: 59).validators
  end

  # The headers of what is stored, and what is asked with.
  test "only what is a tag or a date is sent" do
    rfc850 = Time.at(NOW - 90).utc.strftime("%A, %d-%b-%y %H:%M:%S GMT")
    {
      ["etag: \"e\""] => [["if-none-match", "\"e\""]], ["etag: W/\"e\""] => [["if-none-match", "W/\"e\""]], ["etag: \"\""] => [["if-none-match", "\"\""]],
      ["etag: \"a, b\""] => :miss, ["etag: \"a,b\""] => [["if-none-match", "\"a,b\""]], ["etag: e"] => :miss, ["etag: *"] => :miss, ["etag: w/\"e\""] => :miss,
      ["etag: \"e"] => :miss, ["etag: \"e\", \"f\""] => :miss, ["etag: \"#{"e" * 511}\""] => :miss, ["etag: \"e\"", "etag: \"f\""] => :miss,
      ["etag: \"e\"", "etag: \"e\""] => [["if-none-match", "\"e\""]], ["etag: e", "last-modified: #{date(-9)}"] => [["if-modified-since", date(-9)]],
      ["last-modified: #{rfc850}"] => [["if-modified-since", rfc850]], ["last-modified: lately"] => :miss, ["x: y"] => :miss
    }.each do |lines, expected|
      another_cache
      answer(FRESH, *lines)
      assert_equal expected, validators(at: 9999), lines.inspect
    end
  end

  test "what cannot be a 304 is not asked about" do
    answer(FRESH, "etag: \"e\"", status: 404)
    assert_equal [:fresh, :miss], [kind(ask), kind(ask(at: 60))]
  end

  test "a 304 brings headers, a new age, and the body is that which is stored" do
    answer(FRESH, "etag: \"e\"", "x-old: 1", "x-both: 1", "x-both: 2", "age: 5", "content-length: 4", "content-type: a/b", body: "kept")
    response = not_modified(ask(at: 70), "etag: \"e\"", "cache-control: max-age=100", "x-both: 3", "x-new: 4", "content-type: c/d", "age: 1", at: 70).response
    assert_equal [200, "kept", true, "1"], [response.status, response.body, response.revalidated?, response["age"]]
    again = ask(at: 160).stored.response
    assert_equal ["1", "3", "4", "c/d", date(70), "91"], [again["x-old"], again["x-both"], again["x-new"], again["content-type"], again["date"], again["age"]]
    assert_equal 1, cache.size
    assert_equal :stale, kind(ask(at: 169))
  end

  test "a 304 changes nothing that describes the stored body, or belongs to the connection" do
    answer(FRESH, "etag: \"e\"", "content-length: 4", "content-encoding: x")
    stored = not_modified(ask(at: 60), "content-length: 0", "content-encoding: gzip", "content-range: bytes 0-1/2", "connection: x-gone", "x-gone: 1",
      "transfer-encoding: chunked", "keep-alive: x", at: 60)
    assert_equal [["cache-control", "max-age=60"], ["etag", "\"e\""], ["content-length", "4"], ["content-encoding", "x"], ["date", date(60)]], stored.headers
  end

  test "a 304 without a date is of the time it came" do
    answer(FRESH, "etag: \"e\"")
    cache.validated(ask(at: 60).stored, headers: [], requested_at: NOW + 60, received_at: NOW + 61)
    assert_equal [:fresh, :stale, date(61)], [kind(ask(at: 119)), kind(ask(at: 121)), ask(at: 100).stored.response["date"]]
  end

  test "a 304 with no-store, or one that varies by all, is the last" do
    ["cache-control: no-store", "vary: *"].each do |line|
      another_cache
      answer(FRESH, "etag: \"e\"")
      assert_equal "body", not_modified(ask(at: 60), line, at: 60).response.body
      assert_equal 0, cache.size, line
    end
  end

  test "what no-cache is said of is fresh for nobody, and asked about each time" do
    answer("cache-control: no-cache", "etag: \"e\"")
    3.times do |time|
      found = ask(at: time)
      assert_equal :stale, kind(found)
      assert_equal "body", not_modified(found, "etag: \"e\"", at: time).response.body
    end
  end

  test "for a request that no variant answers, all are asked about, and the tag of the 304 tells which it is (section 4.3.4)" do
    answer_in_languages
    found = ask("accept-language: fr", at: 50)
    assert_equal [["if-none-match", "\"de\", \"en\""]], found.validators
    assert_equal "en", not_modified(found, "etag: \"en\"", FRESH, at: 50).body
    assert_equal [3, "en"], [cache.size, body_of(ask("accept-language: fr", at: 100))]
    assert_equal [:fresh, :stale], [kind(ask("accept-language: en", at: 100)), kind(ask("accept-language: de", at: 100))]
  end

  test "for a request that a stale variant answers, the others are asked about too" do
    answer_in_languages
    found = ask("accept-language: en", at: 60)
    assert_equal [["if-none-match", "\"en\", \"de\""]], found.validators
    assert_equal "de", not_modified(found, "etag: \"de\"", at: 60).body
    assert_equal ["de", 2], [body_of(ask("accept-language: en", at: 61)), cache.size]
  end

  test "a 304 that does not say which means the one that answers the request, or none" do
    answer_in_languages
    assert_equal "en", not_modified(ask("accept-language: en", at: 60), at: 60).body
    assert_nil not_modified(ask("accept-language: fr", at: 61), at: 61)
    assert_nil not_modified(ask("accept-language: de", at: 61), "etag: \"it\"", at: 61)
    assert_equal 2, cache.size
  end

  test "a 304 to the only tag that was sent is about it, and is not believed where it names another" do
    answer(FRESH, "etag: \"e\"")
    validated = not_modified(ask(at: 60), "etag: \"f\"", "x: y", at: 60)
    assert_equal ["body", "\"e\"", nil, true], [validated.body, validated.etag, validated.response["x"], validated.response.revalidated?]
    assert_equal :stale, kind(ask(at: 61))
  end

  test "weak tags are asked about for the request itself only, and match strong ones" do
    answer(FRESH, "vary: accept", "etag: W/\"a\"", request: ["accept: a"], body: "a")
    answer(FRESH, "vary: accept", "etag: \"a\"", request: ["accept: b"], body: "b")
    assert_equal [["if-none-match", "W/\"a\", \"a\""]], validators("accept: a")
    assert_equal [["if-none-match", "\"a\""]], validators("accept: b")
    found = ask("accept: a", at: 60)
    assert_equal "b", not_modified(found, "etag: \"a\"", at: 60).body
    another_cache
    answer(FRESH, "etag: W/\"a\"", body: "weak")
    assert_equal "weak", not_modified(ask(at: 60), "etag: \"a\"", at: 60).body
    assert_equal "\"a\"", ask(at: 61).stored.entry.etag
  end

  test "what has only a date is asked about alone, as beside a tag the date would not count" do
    answer(FRESH, "vary: accept", "etag: \"a\"", request: ["accept: a"])
    answer(FRESH, "vary: accept", "last-modified: #{date(-9)}", request: ["accept: b"], body: "dated")
    assert_equal [["if-modified-since", date(-9)]], validators("accept: b")
    assert_equal "dated", not_modified(ask("accept: b", at: 60), at: 60).body
  end

  test "a tag of another user is not asked about" do
    answer(FRESH, "etag: \"1\"", request: ["authorization: one"], body: "of one")
    assert_equal [:miss, :miss], [validators("authorization: two"), validators]
    assert_equal [["if-none-match", "\"1\""]], validators("authorization: one")
  end

  test "what went meanwhile does not come back, and what came meanwhile stays" do
    answer(FRESH, "etag: \"e\"")
    found = ask(at: 60)
    cache.invalidate(method: "POST", url: URL, status: 200, headers: [])
    assert_equal ["body", 0], [not_modified(found, "etag: \"e\"", at: 60).body, cache.size]
    answer(FRESH, "etag: \"f\"", at: 61, body: "new")
    assert_equal "body", not_modified(found, "etag: \"e\"", at: 62).body
    assert_equal ["new", 1], [body_of(ask(at: 63)), cache.size]
  end

  test "a thousand tags are not all sent" do
    32.times { |number| answer(FRESH, "vary: accept", "etag: \"#{number}#{"e" * 400}\"", request: ["accept: #{number}"]) }
    found = ask("accept: y", at: 1)
    assert_operator found.validators.assoc("if-none-match").last.bytesize, :<=, 4096
    assert_match(/\A"31e/, found.validators.assoc("if-none-match").last)
  end

  test "the answer to a HEAD changes the headers of what is stored (section 4.3.5)" do
    same = ["etag: \"e\"", "last-modified: #{date(-9)}", "content-length: 4"]
    answer(FRESH, *same, "x: 1")
    head = answer(FRESH, *same, "x: 2", method: "HEAD", body: "", at: 50)
    assert_equal ["", "e"], [head.body, head.etag[1]]
    assert_equal ["2", "body", "10"], ask(at: 60).stored.response.then { |response| [response["x"], response.body, response["age"]] }
    ["etag: \"f\"", "last-modified: #{date(-8)}", "content-length: 5", "cache-control: no-store"].each do |line|
      another_cache
      answer(FRESH, *same)
      assert_nil answer(line, method: "HEAD", body: "", at: 50), line
      assert_equal :miss, kind(ask(at: 51)), line
    end
  end

  test "an answer to a HEAD that is none about the body leaves what is stored" do
    [[404, [], ["etag: \"f\""]], [503, [], []], [200, ["accept: other"], ["etag: \"f\""]], [200, ["accept: a", "range: bytes=0-1"], ["etag: \"f\""]],
      [200, ["accept: a", "cache-control: no-store"], ["etag: \"f\""]]].each do |status, request, lines|
      another_cache
      answer(FRESH, "etag: \"e\"", "vary: accept", request: ["accept: a"])
      assert_nil answer(*lines, status: status, request: request, method: "HEAD", body: "")
      assert_equal :fresh, kind(ask("accept: a")), [status, request].inspect
    end
  end

  test "the length of a HEAD is compared where the body is as it was sent" do
    {[[], ["content-length: 4"]] => true, [[], ["content-length: 5"]] => false, [[], ["content-length: 5", "content-encoding: gzip"]] => true,
     [["content-encoding: x", "content-length: 9"], ["content-encoding: x", "content-length: 9"]] => true,
     [["content-encoding: x", "content-length: 9"], ["content-encoding: x", "content-length: 8"]] => false}.each do |(stored, received), kept|
      another_cache
      answer(FRESH, *stored)
      assert_equal kept, !answer(FRESH, *received, method: "HEAD", body: "").nil?, [stored, received].inspect
    end
  end

  test "a HEAD is validated by what is stored of a GET" do
    answer(FRESH, "etag: \"e\"")
    found = ask(at: 60, method: "HEAD")
    assert_equal ["", true], not_modified(found, "etag: \"e\"", at: 60).response.then { |response| [response.body, response.revalidated?] }
    assert_equal "body", body_of(ask(at: 61))
  end
end
