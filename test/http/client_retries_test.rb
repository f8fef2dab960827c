# frozen_string_literal: true

require "test_helper"
require "stringio"
require "time"
require "hikyaku/http/client"
require "support/misbehaving"

# Servers that want to be asked later: RFC 9110, section 10.2.3.
class HTTPClientRetriesTest < Minitest::Test
  HTTP = Hikyaku::HTTP
  # So long nobody waits here.
  LONG = 50_000
  private_constant :HTTP, :LONG

  test "what is refused for now is asked again, as often as is said, and no more" do
    [408, 429, 503].each do |status|
      {0 => [1, status], 1 => [2, status], 2 => [3, 200], 5 => [3, 200]}.each do |retries, (asked, came)|
        refusing(2, status, {"Retry-After" => "0"}) do |server|
          assert_equal [came, asked], [client(retries: retries).get(server.url("/a")).status, server.log.size], "#{status}, #{retries}"
        end
      end
    end
  end

  test "nothing is asked again unless it is asked for, nor what is no such answer" do
    refusing(1, 503, {"Retry-After" => "0"}) { |server| assert_equal 503, client.get(server.url).status }
    [200, 400, 404, 413, 500, 502, 504].each { |status| refusing(1, status, {"Retry-After" => "0"}) { |server| assert_equal [status, 1], [client(retries: 3).get(server.url).status, server.log.size] } }
  end

  test "what may change something with each time, and a body that is read, go once" do
    refusing(99, 503, {"Retry-After" => "0"}) do |server|
      asked = client(retries: 1)
      {"POST" => 1, "PATCH" => 1, "PUT" => 2, "DELETE" => 2, "OPTIONS" => 2, "HEAD" => 2}.each do |method, times|
        before = server.log.size
        assert_equal 503, asked.request(method, server.url, body: ("x" if method.start_with?("P"))).status
        assert_equal times, server.log.size - before, method
      end
      before = server.log.size
      assert_equal 503, asked.put(server.url, body: StringIO.new("x")).status
      assert_equal 1, server.log.size - before
    end
  end

  test "it is asked again with the same body and fields, on a connection that stands" do
    refusing(1, 429, {"Retry-After" => "0"}) do |server|
      assert_equal "PUT /a\n", client(retries: 1).put(server.url("/a"), json: {"a" => 1}, headers: {"X-A" => "b"}).body
      assert_equal [["PUT", "/a", "7", "b", 1]] * 2, server.log.map { |entry| [entry[1], entry[2], entry[3]["content-length"], entry[3]["x-a"], entry[0]] }
    end
  end

  test "who is told to wait longer than the most, or than there is time, has the answer at once" do
    dates = [LONG.to_s, (Time.now + LONG).httpdate, "999999999", "9999999999", "9" * 30]
    dates.each do |value|
      refusing(9, 503, {"Retry-After" => value}) do |server|
        assert_equal [503, 1], [client(retries: 5, timeouts: {}).get(server.url).status, server.log.size]
        assert_equal [503, 2], [client(retries: 5, max_retry_wait: LONG * 30_000).get(server.url, timeout: 60).status, server.log.size]
      end
    end
  end

  test "seconds may have zeros before them" do
    refusing(1, 503, {"Retry-After" => "0" * 30}) { |server| assert_equal [200, 2], [client(retries: 1, max_retry_wait: 0).get(server.url).status, server.log.size] }
  end

  test "a date is the server's: by its own clock" do
    now = Time.now
    {[now + LONG, now + LONG] => 2, [now - 5, now + LONG] => 2, [now + 2 * LONG, now + LONG] => 1, [now - 5, nil] => 2, [now + LONG, nil] => 1}.each do |(at, date), asked|
      refusing(1, 503, {"Retry-After" => at.httpdate, "Date" => date&.httpdate}) do |server|
        client(retries: 1).get(server.url)
        assert_equal asked, server.log.size, [at, date].inspect
      end
    end
  end

  test "a field that says nothing is as none: it is asked again after a moment" do
    [nil, "", "soon", "-1", "1.5"].each do |value|
      refusing(1, 503, {"Retry-After" => value}) { |server| assert_equal [200, 2], [client(retries: 1, max_retry_wait: 0.01).get(server.url).status, server.log.size], value.inspect }
    end
  end

  test "while it waits all else goes on, and a total may end it" do
    refusing(9, 503, {"Retry-After" => "30"}, only: "/late") do |server|
      asked = client(retries: 1)
      late = asked.fetch(server.url("/late"))
      assert_equal Misbehaving.body_of("/a"), asked.get(server.url("/a")).body
      assert_equal Misbehaving.body_of("/b"), asked.get(server.url("/b")).body
      refute_predicate late, :done?
      assert_equal 1, server.log.count { |entry| entry[2] == "/late" }
      late.cancel
      assert_raises(HTTP::Canceled) { late.value }
      later = asked.fetch(server.url("/late"))
      asked.get(server.url("/c"))
      asked.close
      assert_raises(HTTP::Canceled) { later.value }
    end
  end

  test "of those who share what is asked for, who cannot wait has the answer, and who can waits" do
    refusing(1, 503, {"Retry-After" => LONG.to_s}) do |server|
      asked = client(retries: 1, max_retry_wait: LONG)
      short, long = asked.together { [60, nil].map { |seconds| asked.fetch(server.url("/a"), timeout: seconds) } }
      assert_equal 503, short.value.status
      refute_predicate long, :done?
      assert_equal 1, server.log.size
      long.cancel
    end
  end

  test "a request may want other retries than its client, each of those who share an answer its own" do
    refusing(2, 503, {"Retry-After" => "0"}) do |server|
      assert_equal [200, 3], [client.get(server.url("/a"), retries: 2).status, server.log.size]
    end
    refusing(9, 503, {"Retry-After" => "0"}) do |server|
      asked = client(retries: 5)
      assert_equal [503, 1], [asked.put(server.url("/a"), body: "x", retries: 0).status, server.log.size]
      assert_equal [503, 3], [asked.open(server.url("/a"), retries: 1, &:status), server.log.size]
      assert_equal [503, 4], [asked.post(server.url("/a"), retries: 3).status, server.log.size]
    end
    refusing(1, 503, {"Retry-After" => "0"}) do |server|
      asked = client
      once, again = asked.together { [0, 1].map { |retries| asked.fetch(server.url("/a"), retries: retries) } }
      assert_equal [503, 200, 2], [once.value.status, again.value.status, server.log.size]
      [-1, 21, nil, "1"].each { |retries| assert_match(/retries is/, assert_raises(ArgumentError) { asked.get(server.url, retries: retries) }.message) }
    end
  end

  test "a request may have a bad status raised, or not, other than its client, each of those who share an answer for itself" do
    refusing(99, 404, {}) do |server|
      lenient, strict = client, client(raise_for_status: true)
      assert_equal 404, assert_raises(HTTP::BadStatus) { lenient.get(server.url("/a"), raise_for_status: true) }.status
      assert_equal 404, strict.get(server.url("/a"), raise_for_status: false).status
      assert_equal [HTTP::BadStatus] * 2, lenient.get(server.url("/a"), server.url("/b"), raise_for_status: true).map { |outcome| outcome.error.class }
      assert_raises(HTTP::BadStatus) { lenient.open(server.url("/a"), raise_for_status: true, &:status) }
      assert_equal "refused", strict.open(server.url("/a"), raise_for_status: false, &:read)
      one, other = lenient.together { [false, true].map { |raised| lenient.fetch(server.url("/c"), raise_for_status: raised) } }
      assert_equal [404, HTTP::BadStatus, 1], [one.value.status, other.outcome.error.class, server.log.count { |entry| entry[2] == "/c" }]
    end
  end

  test "a stream has the head that counts, and nothing of those before" do
    refusing(1, 503, {"Retry-After" => "0"}) do |server|
      client(retries: 1).open(server.url("/a")) { |stream| assert_equal [200, Misbehaving.body_of("/a")], [stream.status, stream.read] }
    end
    refusing(9, 503, {"Retry-After" => "0"}) do |server|
      client(retries: 1).open(server.url("/a")) { |stream| assert_equal [503, "refused"], [stream.status, stream.read] }
      assert_equal 2, server.log.size
    end
  end

  test "what breaks off is asked once more and no more, however many retries there are" do
    way = Misbehaving::AsTold.new { |_, connection| connection.reset || :reset }
    Misbehaving.run(way) do |server|
      assert_raises(HTTP::ConnectionLost) { client(retries: 5).get(server.url("/a")) }
      assert_equal 2, server.log.size
    end
  end

  test "redirects on the way do not make more of it" do
    count = 0
    way = Misbehaving::AsTold.new do |request, _|
      next "HTTP/1.1 302 x\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n" if request.path == "/a" && (count += 1) > 1
      "HTTP/1.1 503 x\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"
    end
    Misbehaving.run(way) do |server|
      assert_equal 503, client(retries: 2).get(server.url("/a")).status
      assert_equal %w[/a /a /b /b], server.log.map { |entry| entry[2] }
    end
  end

  test "what is stale in the cache, and may be used in place of an error, is" do
    answers = ["HTTP/1.1 200 x\r\nCache-Control: max-age=0, stale-if-error=600\r\nETag: \"a\"\r\nContent-Length: 3\r\n\r\nold", "HTTP/1.1 503 x\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"]
    Misbehaving.run(Misbehaving::AsTold.new { |_, _| (answers.size > 1) ? answers.shift : answers.first }) do |server|
      asked = client(retries: 3, cache: true)
      2.times { assert_equal "old", asked.get(server.url("/a")).body }
      assert_equal 2, server.log.size
    end
  end

  test "a question about what is stale stays one" do
    answers = ["HTTP/1.1 200 x\r\nCache-Control: max-age=0\r\nETag: \"a\"\r\nContent-Length: 3\r\n\r\nold", "HTTP/1.1 429 x\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 304 x\r\nETag: \"a\"\r\n\r\n"]
    Misbehaving.run(Misbehaving::AsTold.new { |_, _| answers.shift }) do |server|
      asked = client(retries: 1, cache: true)
      asked.get(server.url("/a"))
      assert_equal ["old", true], asked.get(server.url("/a")).then { |response| [response.body, response.revalidated?] }
      assert_equal [nil, "\"a\"", "\"a\""], server.log.map { |entry| entry[3]["if-none-match"] }
    end
  end

  test "a client that is attended to waits for it though nobody else does" do
    refusing(1, 503, {"Retry-After" => "0"}) do |server|
      asked = client(retries: 1, attended: true)
      fetch = asked.fetch(server.url("/a"))
      Thread.pass until fetch.done?
      assert_equal [200, 2], [fetch.value.status, server.log.size]
    end
  end

  test "what makes no sense is refused" do
    [{retries: -1}, {retries: 21}, {retries: nil}, {retries: "1"}, {max_retry_wait: -1}, {max_retry_wait: nil}].each { |options| assert_match(/#{options.keys.first} is/, assert_raises(ArgumentError) { client(**options) }.message) }
  end

  private

  def client(timeouts: {total: 120}, **options) = HTTP::Client.new(memory: nil, proxy: nil, timeouts: timeouts, **options)

  # @param times [Integer] that each is refused at first
  def refusing(times, status, headers, only: nil, &block)
    left = times
    lock = Mutex.new
    answer = "HTTP/1.1 #{status} x\r\n#{headers.compact.map { |field| "#{field.join(": ")}\r\n" }.join}"
    way = Misbehaving::AsTold.new do |request, _|
      next if only && request.path != only
      next unless lock.synchronize { (left -= 1) >= 0 }
      (request.method == "HEAD") ? "#{answer}\r\n" : "#{answer}Content-Length: 7\r\n\r\nrefused"
    end
    Misbehaving.run(way, &block)
  end
end
