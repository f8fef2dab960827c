# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client"
require "support/misbehaving"

# Servers that go on and on, a little at a time: what they say is bounded though nobody says how long a request may take.
class HTTPClientEndlessTest < Minitest::Test
  HTTP = Hikyaku::HTTP
  private_constant :HTTP

  HEADS = {
    "a line of a head that has no end" => ["HTTP/1.1 200 OK\r\nX-Long: ", "x"], "a head of ever more lines" => ["HTTP/1.1 200 OK\r\n", "A: b\r\n"], "a status line that has no end" => ["HTTP/1.1 200 ", "O"],
    "one behind what is none" => ["HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nX: ", "x"]
  }.freeze
  LIMITS = {max_headers: 1_000_000, max_head_bytes: 1 << 30, max_line_bytes: 1 << 30}.freeze
  private_constant :HEADS, :LIMITS

  HEADS.each do |what, (first, more)|
    test "#{what} takes too long" do
      trickle(first, more) do |server|
        client = client(limits: LIMITS, timeouts: {head: 0.3})
        error = assert_raises(HTTP::TimedOut) { client.get(server.url("/endless"), timeout: 120) }
        assert_equal :head, error.phase
        assert_match(/did not finish the head of its answer for 0\.3 s/, error.message)
        assert_equal Misbehaving.body_of("/a"), client.get(server.url("/a")).body
      end
    end
  end

  test "what waits behind such a head is asked elsewhere" do
    trickle("HTTP/1.1 200 OK\r\nX: ", "x") do |server|
      client = client(limits: LIMITS, timeouts: {head: 2}, max_connections: 2)
      warm(client, server)
      outcomes = client.get(server.url("/0"), server.url("/1"), server.url("/endless"), Array.new(5) { |n| server.url("/#{n + 2}") }, timeout: 120)
      assert_equal [:head], outcomes.filter_map { |outcome| outcome.error&.phase }
      assert_equal Array.new(7) { |n| Misbehaving.body_of("/#{n}") }, outcomes.reject(&:error).map(&:body)
    end
  end

  test "a head that comes slowly, and in time, is taken" do
    pieces = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".chars
    way = Misbehaving::AsTold.new { |_, connection| pieces.each { |piece| connection.write(piece) } and :told }
    Misbehaving.run(way) { |server| 3.times { assert_equal "ok", client(timeouts: {head: 60}).get(server.url).body } }
  end

  test "who does not take a stream for longer than a head may take still has what comes behind it" do
    long = "x" * 3_000_000
    way = Misbehaving::AsTold.new { |request, _| "HTTP/1.1 200 OK\r\nContent-Length: #{long.bytesize}\r\n\r\n#{long}" if request.path == "/long" }
    Misbehaving.run(way) do |server|
      client = client(timeouts: {head: 0.05})
      client.open(server.url("/long"), alone: false) do |stream|
        stream.status
        5.times { |n| assert_equal Misbehaving.body_of("/#{n}"), client.get(server.url("/#{n}")).body }
        assert_equal long.bytesize, stream.read.bytesize
      end
    end
  end

  BODIES = {
    "of chunks" => ["Transfer-Encoding: chunked", "1\r\nx\r\n"], "until the connection ends" => ["Connection: close", "x"], "of a length that it says" => ["Content-Length: 1000000000", "x"]
  }.freeze
  private_constant :BODIES

  BODIES.each do |what, (field, more)|
    [nil, 8_000_000].each do |cache|
      test "a redirect is followed though its body #{what} has no end#{", with a cache" if cache}" do
        trickle("HTTP/1.1 301 x\r\nCache-Control: max-age=60\r\nLocation: /there\r\n#{field}\r\n\r\n", more) do |server|
          client = client(cache: cache, max_connections: 1)
          assert_equal [server.url("/there"), Misbehaving.body_of("/there")], client.get(server.url("/endless"), timeout: 120).then { |response| [response.url, response.body] }
          self.client(cache: cache).open(server.url("/endless"), timeout: 120) { |stream| assert_equal Misbehaving.body_of("/there"), stream.read }
          assert_equal %w[/a /b], client.get(server.url("/a"), server.url("/b")).map { |outcome| URI(outcome.url).path }
        end
      end
    end
  end

  test "a redirect whose body says nothing any more is followed at its head, with all that it says" do
    held = Queue.new
    jar = Struct.new(:kept) do
      def cookies(_uri) = []

      def parse(value, _uri) = kept << value
    end.new([])
    way = Misbehaving::AsTold.new do |request, connection|
      next unless request.path == "/held"
      connection.write("HTTP/1.1 302 x\r\nLocation: /there\r\nSet-Cookie: a=b\r\nContent-Length: 5\r\n\r\n12")
      held.pop
      "345"
    end
    Misbehaving.run(way) do |server|
      client = client(cookies: jar)
      one, other = client.together { [client.fetch(server.url("/held")), client.fetch(server.url("/held"))] }
      assert_equal [Misbehaving.body_of("/there")] * 2, [one, other].map { |fetch| fetch.value.body }
      assert_equal [["a=b"], 2], [jar.kept, server.log.size]
      posted = client.post(server.url("/held"), form: {a: 1})
      assert_equal ["GET", server.url("/there")], [server.log.last[1], posted.url]
    ensure
      5.times { held << true }
    end
  end

  {"of a length that it says" => ["Content-Length: 5\r\n\r\n12", "345"], "of chunks" => ["Transfer-Encoding: chunked\r\n\r\n2\r\n12\r\n", "3\r\n345\r\n0\r\n\r\n"]}.each do |what, (first, rest)|
    test "the rest of a redirect #{what} that comes soon is read: its connection serves on, and the cache has all of it" do
      sent = Queue.new
      way = Misbehaving::AsTold.new do |request, connection|
        sent << true if request.path == "/there"
        next unless request.path == "/moved"
        connection.write("HTTP/1.1 301 x\r\nCache-Control: max-age=60\r\nLocation: /there\r\n#{first}")
        sent.pop
        rest
      end
      Misbehaving.run(way) do |server|
        cache = HTTP::Cache.new
        client = self.client(cache: cache, max_connections: 2)
        assert_equal server.url("/there"), client.get(server.url("/moved")).url
        client.get(server.url("/#{rand}")) until cache.find(method: "GET", url: server.url("/moved"), headers: [], now: Time.now.to_f).fresh? || server.connections > 2
        assert_equal [2, 2], [server.connections, client.connections]
        stays = self.client(cache: cache, max_redirects: 0)
        assert_equal [301, "12345", true], stays.get(server.url("/moved")).then { |response| [response.status, response.body, response.cached?] }
        assert_equal 1, server.log.count { |entry| entry[2] == "/moved" }
      end
    end
  end

  test "a redirect that was left is not kept when something was changed meanwhile" do
    sent = Queue.new
    way = Misbehaving::AsTold.new do |request, connection|
      next unless request.path == "/moved" && request.method == "GET"
      connection.write("HTTP/1.1 301 x\r\nCache-Control: max-age=60\r\nLocation: /there\r\nContent-Length: 5\r\n\r\n12")
      sent.pop
      "345"
    end
    Misbehaving.run(way) do |server|
      client = client(cache: true)
      client.get(server.url("/moved"))
      client.put(server.url("/moved"), body: "changed")
      sent << true
      5.times { |n| client.get(server.url("/#{n}")) }
      sent << true
      client.get(server.url("/moved"))
      assert_equal 2, server.log.count { |entry| entry[1..2] == %w[GET /moved] }
    end
  end

  test "where a redirect leads to what is refused, that is told though its body has no end" do
    trickle("HTTP/1.1 302 x\r\nLocation: ftp://a.example/\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n") do |server|
      assert_raises(HTTP::BadRedirect) { client.get(server.url("/endless"), timeout: 120) }
    end
  end

  test "what is not followed is an answer with its body" do
    way = Misbehaving::AsTold.new { "HTTP/1.1 302 x\r\nLocation: /there\r\nContent-Length: 5\r\n\r\n12345" }
    Misbehaving.run(way) { |server| assert_equal [302, "12345"], client(max_redirects: 0).get(server.url).then { |response| [response.status, response.body] } }
  end

  private

  def client(**options) = HTTP::Client.new(memory: nil, proxy: nil, **options)

  def warm(client, server)
    client.get(server.url("/w"))
    client.get(*Array.new(4) { |n| server.url("/w#{n}") })
  end

  # @param first [String] what is said at once to who asks for /endless
  # @param more [String] again and again, as long as anybody listens
  def trickle(first, more, &block)
    way = Misbehaving::AsTold.new do |request, connection|
      next unless request.path == "/endless"
      connection.write(first)
      loop do
        connection.write(more)
        sleep(0.005) # it goes on, slowly; when the client is gone, writing raises
      end
    end
    Misbehaving.run(way, &block)
  end
end
