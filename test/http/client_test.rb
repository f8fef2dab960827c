# frozen_string_literal: true

require "test_helper"
require "timeout"
require "hikyaku/http/client"
require "support/misbehaving"

# The client against servers that behave.
class HTTPClientTest < Minitest::Test
  Client = Hikyaku::HTTP::Client
  private_constant :Client

  test "one URL gives its response" do
    serve do |server, client|
      response = client.get(server.url("/a.css"))
      assert_equal [200, Misbehaving.body_of("/a.css"), "text/css", server.url("/a.css")], [response.status, response.body, response["Content-Type"], response.url]
      assert_predicate response, :ok?
      assert_equal Encoding::UTF_8, response.text.encoding
    end
  end

  test "several URLs give their outcomes in order, whatever the order of what is more urgent" do
    serve do |server, client|
      paths = Array.new(40) { |i| "/#{i}.#{%w[gif css js html][i % 4]}" }
      assert_equal paths.map { |path| Misbehaving.body_of(path) }, client.get(*urls(server, paths)).map(&:body)
      assert_equal paths.map { |path| Misbehaving.body_of(path) }, client.get(urls(server, paths.reverse)).map(&:body).reverse
    end
  end

  test "a block is given each as soon as it is there" do
    serve do |server, client|
      seen = []
      assert_nil client.get(*urls(server, %w[/a /b /c])) { |outcome| seen << outcome.body }
      assert_equal %w[/a /b /c].map { |path| Misbehaving.body_of(path) }.sort, seen.sort
    end
  end

  test "once two requests of one write were answered, many are under way on one connection" do
    serve(max_connections: 1) do |server, client|
      client.get(server.url("/"))
      assert_match(/not pipelined yet/, client.explain(server.url))
      client.get(*urls(server, Array.new(30) { |i| "/#{i}" }))
      assert_match(/is pipelined/, client.explain(server.url))
      assert_equal 1, server.connections
      assert_equal 31, server.log.size
    end
  end

  test "two who ask for the same share one fetch" do
    serve do |server, client|
      bodies = client.get(server.url("/a"), server.url("/a"), server.url("/a#b")).map(&:body)
      assert_equal [Misbehaving.body_of("/a")] * 3, bodies
      assert_equal ["/a"], server.log.map { |entry| entry[2] }
    end
  end

  test "what differs in a header is asked for twice" do
    serve do |server, client|
      one, two = client.fetch(server.url("/a"), headers: {"Accept-Language" => "ja"}), client.fetch(server.url("/a"), headers: {"Accept-Language" => "en"})
      [one, two].each { |fetch| assert_predicate fetch.value, :ok? }
      assert_equal %w[en ja], server.log.map { |entry| entry[3]["accept-language"] }.sort
    end
  end

  test "only the first request of a connection says who asks; what is compressed already is not offered codings" do
    serve(max_connections: 1) do |server, client|
      client.get(server.url("/a.txt"))
      client.get(server.url("/b.gif"))
      first, second = server.log.map(&:last)
      assert_match(/\Ahikyaku\//, first["user-agent"])
      assert_match(/gzip/, first["accept-encoding"])
      assert_equal %w[host], second.keys
    end
  end

  test "name and password in a URL are told to its origin, at each request that has them, and to nobody else" do
    other = nil
    moved = Misbehaving::AsTold.new do |request, _|
      {"/away" => other&.url("/there"), "/along" => "/here"}[request.path]&.then { |to| "HTTP/1.1 302 Found\r\nLocation: #{to}\r\nContent-Length: 0\r\n\r\n" }
    end
    Misbehaving.run(:well_behaved) do |there|
      other = there
      Misbehaving.run(moved) do |server|
        client = self.client
        named = ->(path) { server.url(path).sub("//", "//b%6Fb:p%3Aw+%C3%A9@") }
        said = ["Basic #{["bob:p:w+\u00E9"].pack("m0")}".b]
        {"/a" => said, "/along" => said * 2, "/away" => said}.each do |path, expected|
          before = server.log.size
          client.get(named.call(path))
          assert_equal expected, server.log.drop(before).map { |entry| entry[3]["authorization"] }, path
        end
        client.get(server.url("/b"))
        client.get(named.call("/c"), headers: {"Authorization" => "Bearer mine"})
        client(headers: {"Authorization" => "Bearer ours"}).get(named.call("/d"))
        assert_equal [nil, "Bearer mine", "Bearer ours"], server.log.last(3).map { |entry| entry[3]["authorization"] }
        assert_equal [nil], there.log.map { |entry| entry[3]["authorization"] }
      end
    end
  end

  test "name and password in a URL are shown nowhere" do
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    url = "http://bob:s3cret@127.0.0.1:#{port}/a"
    client = self.client
    fetch = client.fetch(url)
    error = assert_raises(Hikyaku::HTTP::ConnectFailed) { fetch.value }
    bad = assert_raises(Hikyaku::HTTP::InvalidURL) { client.get(url.sub("s3cret", "s3cret%")) }
    assert_match(/percent-encoded/, bad.message)
    [client.inspect, fetch.inspect, fetch.url, fetch.outcome.inspect, error.message, error.url, bad.message, client.explain(url), *client.explanations].each do |text|
      refute_match(/bob|s3cret|#{["bob:s3cret"].pack("m0")}/, text)
    end
  end

  test "a POST has a connection to itself, and is sent once" do
    serve do |server, client|
      assert_equal "POST /a\n", client.post(server.url("/a"), body: "x" * 100_000).body
      assert_equal(["POST"], server.log.map { |entry| entry[1] })
      assert_equal "100000", server.log.first.last["content-length"]
    end
  end

  test "a body that is read says how long it is, where that is known, and goes in chunks where it is not" do
    serve do |server, client|
      IO.pipe do |reader, writer|
        writer << "x" * 1_000
        writer.close
        {StringIO.new("x" * 200_000) => "200000", File.open(__FILE__) => File.size(__FILE__).to_s, StringIO.new => "0", reader => nil}.each do |body, length|
          assert_equal "PUT /a\n", client.put(server.url("/a"), body: body).body
          assert_equal [length, length ? nil : "chunked"], server.log.last.last.values_at("content-length", "transfer-encoding")
        end
      end
      IO.pipe do |reader, writer| # which stays open
        writer << "12345"
        assert_equal "PUT /a\n", client.put(server.url("/a"), body: reader, headers: {"content-length" => "5"}, timeout: 180).body
        assert_equal ["5", nil], server.log.last.last.values_at("content-length", "transfer-encoding")
      end
    end
  end

  test "a body that is not as long as was announced fails its request, and its connection is not used again" do
    serve do |server, client|
      client.get(server.url("/before"))
      {"1234" => /ended after 4 of the 5/, "123456" => /more than the 5/}.each do |body, complaint|
        error = assert_raises(Hikyaku::HTTP::BodyFailed) { client.put(server.url("/a"), body: StringIO.new(body), headers: {"content-length" => "5"}) }
        assert_match complaint, error.message
        assert_predicate client.get(server.url("/after")), :ok?
      end
      assert_equal(%w[GET], server.log.map { |entry| entry[1] }.uniq)
      assert_equal 3, server.log.map(&:first).uniq.size
    end
  end

  test "an answer whose lines end with LF is understood, alone and among others" do
    way = Misbehaving::AsTold.new { |request, _| "HTTP/1.1 200 OK\nContent-Length: #{request.path.bytesize}\nX-Path: #{request.path}\n\n#{request.path}" }
    Misbehaving.run(way) do |server|
      client = Client.new(memory: nil, proxy: nil)
      paths = Array.new(30) { |i| "/#{i}" }
      2.times { assert_equal paths.zip(paths), client.get(paths.map { |path| server.url(path) }).map { |response| [response.body, response["x-path"]] } }
      assert_match(/is pipelined/, client.explain(server.url))
    ensure
      client&.close
    end
  end

  test "an answer whose fields are folded is understood, alone and among others, and one whose length is folded is refused" do
    fields = ->(path) { {"/there" => "Location:\r\n /here\r\n", "/length" => "X: a\r\nContent-Length: 0\r\n 5\r\n"}.fetch(path, "Set-Cookie: a=b;\r\n\tPath=#{path}\r\n") }
    way = Misbehaving::AsTold.new do |request, _|
      "HTTP/1.1 #{(request.path == "/there") ? 302 : 200} OK\r\n#{fields.call(request.path)}#{"Content-Length: 0\r\n" unless request.path == "/length"}\r\n"
    end
    Misbehaving.run(way) do |server|
      client = Client.new(memory: nil, proxy: nil)
      paths = Array.new(30) { |i| "/#{i}" }
      2.times { assert_equal paths.map { |path| "a=b; Path=#{path}" }, client.get(paths.map { |path| server.url(path) }).map { |response| response["set-cookie"] } }
      assert_equal server.url("/here"), client.get(server.url("/there")).url
      assert_raises(Hikyaku::HTTP::BadResponse) { client.get(server.url("/length")) }
    ensure
      client&.close
    end
  end

  test "a stream gives its pieces, and an enumerator of them" do
    serve do |server, client|
      stream = client.open(server.url("/a"))
      assert_equal 200, stream.status
      assert_equal Misbehaving.body_of("/a"), stream.each.to_a.join
      assert_equal Misbehaving.body_of("/b"), client.open(server.url("/b"), &:read)
    end
  end

  test "many threads share a client" do
    serve do |server, client|
      bodies = Array.new(8) { |thread| Thread.new { Array.new(20) { |i| client.get(server.url("/#{thread}-#{i}")).body } } }.map(&:value)
      assert_equal Array.new(8) { |thread| Array.new(20) { |i| Misbehaving.body_of("/#{thread}-#{i}") } }, bodies
    end
  end

  test "a fetch that is not wanted any more raises, and others come" do
    serve do |server, client|
      one, two = client.fetch(server.url("/a")), client.fetch(server.url("/b"))
      one.cancel
      assert_raises(Hikyaku::HTTP::Canceled) { one.value }
      assert_equal Misbehaving.body_of("/b"), two.value.body
    end
  end

  test "where nobody listens the error says so" do
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    error = assert_raises(Hikyaku::HTTP::ConnectFailed) { client.get("http://127.0.0.1:#{port}/") }
    assert_match(/127\.0\.0\.1.*#{port}/, error.message)
    outcomes = client.get("http://127.0.0.1:#{port}/a", "http://127.0.0.1:#{port}/b")
    assert_equal [Hikyaku::HTTP::ConnectFailed] * 2, outcomes.map { |outcome| outcome.error.class }
    assert_raises(Hikyaku::HTTP::ConnectFailed) { outcomes.first.body }
  end

  {
    "ftp://example.com/" => /no http or https URL/, "/a" => /no URL/, "http://" => /URL/, "http://a:b@ c/" => /no URL/, "x" * 20_000 => /longer than/
  }.each do |url, message|
    test "#{url[0, 30]} is refused before anything is asked" do
      error = assert_raises(Hikyaku::HTTP::InvalidURL) { client.get("http://127.0.0.1:1/", url) }
      assert_match message, error.message
      refute_includes error.message, "a:b@"
    end
  end

  test "header fields that would change the framing, or that are none, are refused" do
    [["Content-Length", "3"], ["transfer-encoding", "chunked"], ["a b", "c"], ["X", "a\r\nY: b"], ["Connection", "close"]].each do |name, value|
      assert_raises(ArgumentError, name) { client.get("http://127.0.0.1:1/", headers: {name => value}) }
    end
  end

  test "all that is asked for in time is answered in time, or raises" do
    Misbehaving.run(:slow_first_byte, seconds: 5) do |server|
      error = assert_raises(Hikyaku::HTTP::TimedOut) { client.get(server.url("/a"), timeout: 0.1) }
      assert_equal :total, error.phase
      error = assert_raises(Hikyaku::HTTP::TimedOut) { client(timeouts: {first_byte: 0.1}).get(server.url("/a")) }
      assert_equal :first_byte, error.phase
    end
  end

  test "a client can be used on after it was closed" do
    serve do |server, client|
      client.get(server.url("/a"))
      client.close
      assert_predicate client.get(server.url("/b")), :ok?
      assert_equal 2, server.connections
    end
  end

  test "the time for a request is a number above 0, or nil" do
    ["1", 0, -1, :soon, Float::NAN].each do |timeout|
      [-> { client.get("http://localhost/", timeout: timeout) }, -> { client.get(["http://localhost/"], timeout: timeout) },
        -> { client.fetch("http://localhost/", timeout: timeout) }, -> { client.open("http://localhost/", timeout: timeout) }].each do |ask|
        assert_match(/timeout is .*; it has to be a number from 0.001/, assert_raises(ArgumentError, timeout.inspect, &ask).message)
      end
    end
  end

  # What was begun before the process had a child, and what is done with it there.
  IN_A_CHILD = {
    "waits for a fetch" => ->(client, url) { client.fetch(url).then { |fetch| -> { fetch.value } } }, "reads a stream" => ->(client, url) { client.open(url).then { |stream| -> { stream.read } } },
    "waits for a head" => ->(client, url) { client.open(url).then { |stream| -> { stream.status } } }
  }.freeze
  private_constant :IN_A_CHILD

  IN_A_CHILD.each do |what, begin_|
    [{}, {attended: true}].each do |options|
      test "a child of the process that #{what} of its parent is told so, takes no byte of it, and closes nothing#{" (attended)" if options.any?}" do
        gate = Queue.new
        way = Misbehaving::AsTold.new { |request, _| gate.pop && nil if request.path == "/held" }
        Misbehaving.run(way) do |server|
          client = self.client(**options)
          taken = begin_.call(client, server.url("/held"))
          parent = client.fetch(server.url("/held?2"))
          said = child do
            taken.call
          rescue Hikyaku::HTTP::Canceled => error
            parent.cancel
            error.message
          end
          assert_match(/\A#{Regexp.escape(server.url("/held"))} was asked for by another process/, said)
          2.times { gate << true }
          taken.call
          assert_equal Misbehaving.body_of("/held?2"), parent.value.body
          assert_operator server.log.size, :<=, 2
        ensure
          client.close
        end
      end
    end
  end

  test "what a child of the process lets go of its parent's, the parent gets" do
    gate, written = Queue.new, Queue.new
    way = Misbehaving::AsTold.new do |_, connection|
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
      gate.pop
      connection.write("plain")
      written << true
      :nothing
    end
    Misbehaving.run(way) do |server|
      stream = client.open(server.url("/a"))
      assert_predicate stream, :ok?
      gate << true
      written.pop
      child { stream.close }
      pieces = []
      stream.each { |piece| pieces << piece }
      assert_equal "plain", pieces.join
    end
  end

  test "what came before the process had a child is there in it" do
    serve do |server, client|
      fetch = client.fetch(server.url("/a"))
      fetch.value
      assert_equal Misbehaving.body_of("/a"), child { fetch.value.body }
    end
  end

  test "a child of the process has connections of its own" do
    serve do |server, client|
      client.get(server.url("/a"))
      pid = fork { exit!(client.get(server.url("/b")).ok? ? 0 : 1) }
      assert_predicate Process.wait2(pid).last, :success?
      assert_predicate client.get(server.url("/c")), :ok?
      assert_equal 2, server.connections
    end
  end

  private

  def client(**options) = Client.new(memory: nil, cache: false, proxy: nil, **options)

  def serve(**options)
    Misbehaving.run(:well_behaved) { |server| yield server, client(**options) }
  end

  # What the block returns in a child of this process.
  def child
    reader, writer = IO.pipe
    pid = fork do
      writer.write(Timeout.timeout(60) { yield.to_s })
    rescue Exception => error # standard:disable Lint/RescueException
      writer.write("#{error.class}: #{error.message}")
    ensure
      exit!(0)
    end
    writer.close
    reader.read
  ensure
    Process.wait(pid)
    reader.close
  end

  def urls(server, paths) = paths.map { |path| server.url(path) }
end
