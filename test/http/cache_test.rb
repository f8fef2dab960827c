# frozen_string_literal: true

require "test_helper"
require_relative "cache/scenario"

# RFC 9111, for a private cache: what is stored, how long it is fresh, and what requests may ask for.
class HTTPCacheTest < Minitest::Test
  include CacheScenario

  test "what is fresh is answered without asking, with its age" do
    answer("cache-control: max-age=60", "content-type: text/plain", "x: 1", "x: 2", body: "bytes \xFF")
    response = ask(at: 59.9).stored.response
    assert_equal [200, "bytes \xFF".b, URL, "59", %w[1 2]], [response.status, response.body, response.url, response["age"], response.values("x")]
    assert response.cached?
    assert_equal [Encoding::BINARY], [response.body, *response.headers.flatten.grep_v(/\Aage|\A59/)].map(&:encoding).uniq
    assert [response.body, response.headers, *response.headers, *response.headers.flatten].all?(&:frozen?)
    assert_equal :miss, kind(ask(at: 60))
    assert_equal :miss, kind(ask(at: 1, url: "#{URL}?b"))
  end

  test "the caller's body and headers may change afterwards" do
    body, value = +"body", +"max-age=60"
    cache.store(method: "GET", url: URL, request_headers: [], status: 200, headers: [[+"cache-control", value]], body: body, requested_at: NOW, received_at: NOW)
    body << "!"
    value.replace("no-store")
    assert_equal %w[body max-age=60], ask.stored.response.then { |response| [response.body, response["cache-control"]] }
  end

  test "a fragment is not part of the URL" do
    answer("cache-control: max-age=60", url: "#{URL}#one")
    assert_equal :fresh, kind(ask(url: "#{URL}#two"))
    assert_equal URL, ask.stored.url
  end

  # What came for a request with these lines, with this status and these lines, is stored or not.
  def storing
    fresh = "cache-control: max-age=60"
    [
      [[], 200, [fresh], true], [[], 200, [], false], [[], 200, ["etag: \"a\""], true], [[], 200, ["last-modified: #{date(-1000)}"], true],
      [[], 200, ["expires: #{date(60)}"], true], [[], 200, ["cache-control: private, max-age=60"], true],
      [[], 200, ["cache-control: private=\"x\", max-age=60"], true], [["authorization: Basic YTpi"], 200, [fresh], true],
      # no-store, wherever it stands and however it is written
      [[], 200, ["cache-control: no-store, max-age=60"], false], [[], 200, [fresh, "cache-control: no-store"], false],
      [[], 200, ["cache-control: max-age=60,No-STORE"], false], [[], 200, ["cache-control: no-store=\"x\", max-age=60"], false],
      [[], 200, ["cache-control: x=\"no-store\", max-age=60"], true], [[], 200, ["cache-control: x=\"a\\\", no-store\", max-age=60"], true],
      [[], 200, ["cache-control: max-age=60, x=\"open"], false], [[], 200, ["cache-control: max-age=60, x=\"open\\\""], false],
      [[], 200, ["cache-control: max-age=60, #{"x" * 5000}"], false], [[], 200, ["connection: cache-control", "cache-control: no-store"], false],
      [["cache-control: no-store"], 200, [fresh], false],
      # section 5.2.2.3
      [[], 200, ["cache-control: must-understand, no-store, max-age=60"], true], [[], 599, ["cache-control: must-understand, no-store, max-age=60"], false],
      [[], 418, ["cache-control: must-understand, max-age=60"], false],
      # no whole answer, or one to this request only
      [[], 206, [fresh, "content-range: bytes 0-3/9"], false], [[], 304, [fresh], false], [["range: bytes=0-3"], 200, [fresh], true],
      [["range: bytes=9-"], 416, [fresh], false], [["if-match: \"a\""], 412, [fresh], false], [["if-none-match: \"a\""], 200, [fresh], true],
      [[], 200, [fresh, "vary: *"], false],
      # nobody said how long
      [[], 302, ["etag: \"a\"", "last-modified: #{date(-1000)}"], false], [[], 302, [fresh], true], [[], 307, ["expires: #{date(60)}"], true],
      [[], 500, [fresh], true], [[], 599, [fresh], true], [[], 299, ["cache-control: public", "last-modified: #{date(-1000)}"], true],
      [[], 299, ["last-modified: #{date(-1000)}"], false],
      # never of use
      [[], 200, ["cache-control: s-maxage=60"], false], [[], 200, [fresh, "age: 60"], false], [[], 200, [fresh, "age: 60", "etag: \"a\""], true],
      [[], 404, ["etag: \"a\""], false], [[], 200, ["etag: a"], false], [[], 200, ["last-modified: lately"], false],
      [[], 200, ["cache-control: max-age=0, stale-if-error=60"], true]
    ]
  end

  test "what may be kept, and is of use, is stored, and nothing else (section 3)" do
    storing.each do |request, status, lines, stored|
      another_cache
      assert_equal [stored, stored ? 1 : 0], [!answer(*lines, request: request, status: status).nil?, cache.size], [request, status, lines].inspect
    end
  end

  test "status codes that may be kept without being told how long are those of RFC 9110, section 15.1" do
    kept = (200..599).select do |status|
      another_cache(heuristic: true)
      answer("last-modified: #{date(-1000)}", status: status)
    end
    assert_equal [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501], kept
  end

  test "only answers to GET are stored, and only GET and HEAD are answered" do
    %w[POST PUT DELETE PATCH OPTIONS TRACE HEAD QUERY].each { |method| assert_nil answer("cache-control: max-age=60", method: method), method }
    answer("cache-control: max-age=60", "content-length: 4")
    head = ask(method: "HEAD").stored.response
    assert_equal ["", "4", 200], [head.body, head["content-length"], head.status]
    %w[POST PUT OPTIONS get].each { |method| assert_equal :miss, kind(ask(method: method)), method }
  end

  # With an entity tag each, so that what is not fresh is stale.
  def lifetimes
    control = {
      "max-age=60" => 60, "s-maxage=10, max-age=60" => 60, "max-age=\"60\"" => 60, "MAX-AGE=60" => 60, "max-age=0060" => 60, ", ,max-age=60,,x" => 60,
      "max-age=60, max-age=30" => 30, "x=\"max-age=30\", max-age=60" => 60, "max-age=60, max-age=y" => 0, "max-age =60" => 0, "max-age= 60" => 0,
      "max-age=-60" => 0, "max-age=60.0" => 0, "max-age='60'" => 0, "max-age=6o" => 0, "max-age" => 0, "max-age=" => 0, "max-age=\"6" => nil,
      "max-age=99999999999999999999" => 2**31, "max-age=#{"9" * 4000}" => 2**31, "s-maxage=60" => 0, "max-age=60, no-cache" => 0,
      "max-age=60, no-cache=x" => 0, "max-age=60, no-cache=\"\"" => 0, "max-age=60, no-cache=\"x\", no-cache" => 0, "max-age=60, no-cache=\"x, y\"" => 60,
      "max-age=60, no-cache=\"x y\"" => 0, "max-age=60, must-revalidate, proxy-revalidate" => 60, "max-age 60" => 0
    }
    control.map { |value, seconds| [["cache-control: #{value}"], seconds] } + [
      [["cache-control: max-age=30", "cache-control: max-age=60"], 30], [["cache-control: max-age=60", "expires: #{date(10)}"], 60],
      [["cache-control: max-age=0", "expires: #{date(60)}"], 0], [["cache-control: max-age=y", "expires: #{date(60)}"], 0],
      [["cache-control: max-age=60", "expires: 0"], 60], [["cache-control: x", "expires: #{date(60)}"], 60],
      [["expires: #{date(60)}", "date: #{date(-30)}"], 60], [["expires: #{date(-60)}"], 0], [["expires: 0"], 0], [["expires: -1"], 0],
      [["expires: #{date(60)}", "expires: #{date(30)}"], 30], [["expires: #{date(60)}", "expires: 0"], 0], [["expires: #{date(60)}, #{date(60)}"], 0],
      [["expires: #{date(60)}", "last-modified: #{date(-1000)}"], 60], [["pragma: no-cache", "cache-control: max-age=60"], 60],
      # section 4.2.2: a tenth, a day at most
      [["last-modified: #{date(-1000)}"], 100], [["last-modified: #{date(-30 * 86_400)}"], 86_400], [["last-modified: #{date(1000)}"], 0],
      [["last-modified: lately"], 0], [["last-modified: #{date(-1000)}", "last-modified: #{date(-2000)}"], 0],
      # sections 4.2.3 and 5.1
      [["cache-control: max-age=60", "age: 20"], 40], [["cache-control: max-age=60", "age: 20, 50"], 40], [["cache-control: max-age=60", "age: 20", "age: 50"], 40],
      [["cache-control: max-age=60", "age: -20"], 60], [["cache-control: max-age=60", "age: x"], 60], [["cache-control: max-age=60", "age: 20.0"], 60],
      [["cache-control: max-age=60", "age: #{"9" * 60}"], 0], [["cache-control: max-age=60", "date: #{date(-20)}"], 40],
      [["cache-control: max-age=60", "date: #{date(-20)}", "age: 30"], 30], [["cache-control: max-age=60", "date: #{date(1000)}"], 60],
      [["cache-control: max-age=60", "date: lately"], 60], [["connection: age, cache-control", "cache-control: max-age=60", "age: 20"], 40]
    ]
  end

  test "a response is fresh for as long as it says, and not a moment longer (section 4.2)" do
    lifetimes.each do |lines, seconds|
      another_cache(heuristic: true)
      answer(*lines, "etag: \"e\"")
      next assert_equal :miss, kind(ask(at: 0)), lines.inspect unless seconds
      assert_equal :fresh, kind(ask(at: seconds - 1)), lines.inspect if seconds > 0
      assert_equal :stale, kind(ask(at: seconds)), lines.inspect
    end
  end

  test "without a lifetime the server is asked each time, unless the cache was told to guess (section 4.2.2)" do
    answer("last-modified: #{date(-30 * 86_400)}")
    assert_equal :stale, kind(ask(at: 0))
    assert_equal [["if-modified-since", date(-30 * 86_400)]], ask(at: 0).validators
    assert_equal "body", not_modified(ask(at: 1), "last-modified: #{date(-30 * 86_400)}", at: 1).body
    assert_equal :stale, kind(ask(at: 1)), "nor is it fresh once it was validated"
    another_cache(heuristic: true)
    answer("last-modified: #{date(-30 * 86_400)}")
    assert_equal :fresh, kind(ask(at: 0))
  end

  test "the time that the answer took counts as age" do
    answer("cache-control: max-age=60", "age: 10", delay: 5)
    assert_equal [17.0, "17"], [ask(at: 2).stored.age(NOW + 2), ask(at: 2).stored.response["age"]]
    assert_equal :miss, kind(ask(at: 45))
  end

  test "a clock that is set back makes nothing younger" do
    answer("cache-control: max-age=60")
    assert_equal :fresh, kind(ask(at: -50))
    assert_equal :miss, kind(ask(at: -60))
  end

  test "a response without a date gets that of its receipt (RFC 9110, section 6.6.1), and keeps no other's age" do
    stored = cache.store(method: "GET", url: URL, request_headers: [], status: 200, headers: fields(["cache-control: max-age=60", "age: 5"]), body: "",
      requested_at: NOW, received_at: NOW)
    assert_equal [date], stored.response.values("date")
    assert_equal %w[6], ask(at: 1).stored.response.values("age")
    assert_equal %w[cache-control date], stored.headers.map(&:first)
  end

  # A response that is fresh for 60 seconds, with this added to its Cache-Control; asked for at this age with these lines, it is this.
  def wishes
    control = [
      ["", 10, "no-cache", :stale], ["", 10, "max-age=20", :fresh], ["", 10, "max-age=10", :fresh], ["", 11, "max-age=10", :stale], ["", 0, "max-age=0", :stale],
      ["", 10, "max-age=x", :stale], ["", 10, "max-age=20, max-age=5", :stale], ["immutable", 10, "max-age=0", :fresh], ["immutable", 60, "max-age=0", :stale],
      ["immutable", 10, "no-cache", :stale], ["", 10, "min-fresh=50", :fresh], ["", 11, "min-fresh=50", :stale], ["", 10, "min-fresh=x", :stale],
      ["", 10, "min-fresh", :stale], ["", 10, "min-fresh=5, min-fresh=55", :stale], ["", 100, "max-stale", :fresh], ["", 100, "max-stale=40", :fresh],
      ["", 101, "max-stale=40", :stale], ["", 101, "max-stale, max-stale=40", :stale], ["", 100, "max-stale=x", :stale], ["", 100, "max-stale, max-age=50", :stale],
      ["", 100, "max-stale, min-fresh=1", :stale], ["must-revalidate", 100, "max-stale", :stale], ["no-cache", 10, "max-stale", :stale],
      ["proxy-revalidate", 100, "max-stale", :fresh], ["", 10, "only-if-cached", :fresh], ["", 60, "only-if-cached", :unsatisfiable],
      ["", 100, "only-if-cached, max-stale", :fresh], ["", 10, "only-if-cached, no-cache", :unsatisfiable], ["", 10, "no-store", :miss],
      ["", 10, "no-store, only-if-cached", :unsatisfiable], ["", 10, "x=\"open", :miss], ["", 10, "x=\"no-cache\"", :fresh]
    ]
    control.map { |added, at, wish, expected| [added, at, ["cache-control: #{wish}"], expected] } + [
      ["", 10, ["pragma: no-cache"], :stale], ["", 10, ["pragma: x"], :fresh], ["", 10, ["pragma: no-cache", "cache-control: x"], :fresh]
    ]
  end

  test "a request says what it wants (sections 5.2.1 and 5.4)" do
    wishes.each do |added, at, lines, expected|
      another_cache
      answer("cache-control: max-age=60, #{added}", "etag: \"e\"")
      assert_equal expected, kind(ask(*lines, at: at)), [added, at, lines].inspect
    end
  end

  test "a request with conditions of its own, or for a part, is not answered" do
    answer("cache-control: max-age=60", "etag: \"e\"")
    ["if-none-match: \"e\"", "if-modified-since: #{date}", "if-match: \"e\"", "if-unmodified-since: #{date}", "range: bytes=0-1", "if-range: \"e\""].each do |line|
      assert_equal :miss, kind(ask(line)), line
      assert_equal :unsatisfiable, kind(ask(line, "cache-control: only-if-cached")), line
    end
    assert_equal :fresh, kind(ask)
  end

  test "what came later takes the place of what was there, and so does what is not stored" do
    answer("cache-control: max-age=60", body: "old")
    answer("cache-control: max-age=60", body: "new")
    assert_equal [1, "new"], [cache.size, body_of(ask)]
    answer("cache-control: no-store")
    assert_equal :miss, kind(ask)
  end

  test "an answer that says nothing of the resource leaves what is stored" do
    [[[], 500, []], [[], 503, ["cache-control: no-store"]], [[], 429, []], [[], 304, []], [["range: bytes=0-1"], 206, []], [["range: bytes=9-"], 416, []],
      [["if-none-match: \"z\""], 304, []], [["cache-control: no-store"], 200, ["cache-control: max-age=5"]]].each do |request, status, lines|
      another_cache
      answer("cache-control: max-age=60", body: "kept")
      assert_nil answer(*lines, request: request, status: status)
      assert_equal "kept", body_of(ask), [request, status].inspect
    end
  end

  test "fields of the connection are not stored, and no connection option takes away what caches need (section 3.1)" do
    gone = ["connection: x-gone, cache-control, Vary", "x-gone: 1", "keep-alive: timeout=5", "proxy-connection: x", "te: x", "trailer: x", "transfer-encoding: chunked",
      "upgrade: x", "proxy-authenticate: x", "proxy-authentication-info: x", "proxy-authorization: x"]
    answer(*gone, "cache-control: max-age=60", "vary: accept", "x-stays: 1", "set-cookie: a=b", "content-type: a/b", request: ["accept: a"])
    assert_equal %w[date cache-control vary x-stays set-cookie content-type], ask("accept: a").stored.headers.map(&:first)
    assert_equal :miss, kind(ask("accept: b"))
  end

  test "fields that no-cache names are not shown without validation (section 5.2.2.4)" do
    answer("cache-control: max-age=60, no-cache=\"X-One , x-two\"", "x-one: 1", "x-two: 2", "x-three: 3", "etag: \"e\"")
    assert_equal [nil, nil, "3"], ask.stored.response.then { |response| [response["x-one"], response["x-two"], response["x-three"]] }
    validated = not_modified(ask(at: 60), at: 60).response
    assert_equal ["1", "2", true], [validated["x-one"], validated["x-two"], validated.revalidated?]
  end

  test "what may be used when the server fails is offered (RFC 5861, section 4)" do
    [["stale-if-error=30", 89, true], ["stale-if-error=30", 91, false], ["stale-if-error=x", 61, false], ["stale-if-error=30, must-revalidate", 61, false],
      ["stale-if-error=30, no-cache", 61, false], ["x", 61, false]].each do |added, at, offered|
      ["etag: \"e\"", "x: y"].each do |line|
        another_cache
        answer("cache-control: max-age=60, #{added}", line)
        assert_equal offered, ask(at: at).fallback&.body == "body", [added, at, line].inspect
      end
    end
  end

  test "nothing that is shown tells what may be secret" do
    answer("cache-control: max-age=60", "set-cookie: a=s3cret", "vary: cookie", request: ["authorization: s3cret", "cookie: s3cret"], body: "s3cret")
    found = ask("authorization: s3cret", "cookie: s3cret")
    assert_equal :fresh, kind(found)
    [cache, found, found.stored, found.stored.entry, found.stored.request, found.stored.entry.vary].each { |object| refute_includes object.inspect, "s3cret" }
  end
end
