# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client"
require "stringio"
require "support/misbehaving"
require "zlib"

# What goes wrong with one request is told to who asked for it, and to nobody else, whoever moves things at that time.
class HTTPClientDispatcherTest < Minitest::Test
  HTTP = Hikyaku::HTTP
  Cookie = Struct.new(:cookie_value)
  private_constant :HTTP, :Cookie

  # A jar that has, and does, what a test says.
  class Jar
    attr_reader :kept

    def initialize(cookies: ->(_uri) { [] }, keep: ->(_value) {})
      @cookies = cookies
      @keep = keep
      @kept = []
    end

    def cookies(uri) = @cookies.call(uri).map { |value| Cookie.new(value) }

    def parse(value, uri)
      @keep.call(value)
      @kept << [uri.path, value]
    end
  end

  test "what cannot be asked for leaves nothing that the next could wait for" do
    client = client(proxy: "https://127.0.0.1:1")
    2.times { assert_raises(HTTP::InvalidURL) { client.get("http://a.example/", timeout: 5) } }
    2.times { assert_raises(HTTP::InvalidURL) { client.get("http://a.example/", "http://b.example/", timeout: 5) } }
    assert_raises(HTTP::InvalidURL) { client(proxy: "http://a:%zz@127.0.0.1:1").get("http://a.example/") }.then { |error| refute_includes error.message, "%zz" }
  end

  test "where a variable names no proxy, what would go by it is refused, and nothing else with it" do
    before = ENV.to_h
    ENV.update("http_proxy" => "socks5://127.0.0.1:1", "no_proxy" => "127.0.0.1")
    serve(->(request) { redirect("http://a.example/") if request.path == "/away" }, proxy: :environment) do |server, client|
      2.times { assert_raises(HTTP::InvalidURL) { client.get("http://a.example/", timeout: 5) } }
      away, other = client.get(server.url("/away"), server.url("/other"), timeout: 10)
      assert_kind_of HTTP::RequestFailed, away.error
      assert_equal Misbehaving.body_of("/other"), other.body
      assert_kind_of HTTP::RequestFailed, client.fetch(server.url("/away"), timeout: 10).outcome.error
    end
  ensure
    ENV.replace(before)
  end

  test "a jar that raises fails the request that it is asked about, without telling a cookie" do
    raising = ->(uri) { (uri.path == "/bad") ? raise("secret") : [] }
    {
      Jar.new(cookies: raising) => "RuntimeError", Jar.new(keep: ->(_) { raise "secret" }) => "RuntimeError", Jar.new(cookies: ->(uri) { (uri.path == "/bad") ? ["secret\r\nX: y"] : [] }) => "ArgumentError"
    }.each do |jar, cause|
      serve(->(request) { {"/bad" => answer(request).with("Set-Cookie" => "a=secret"), "/away" => redirect("/bad")}[request.path] }, cookies: jar) do |server, client|
        outcomes = client.get(*%w[/bad /away /good].map { |path| server.url(path) }, timeout: 10)
        assert_equal [HTTP::RequestFailed, HTTP::RequestFailed, NilClass], outcomes.map { |outcome| outcome.error.class }
        outcomes.first(2).each { |outcome| assert_match(/jar of cookies failed at #{server.url("/bad")} \(#{cause}\)/, outcome.error.message) }
        assert_kind_of HTTP::RequestFailed, client.fetch(server.url("/bad"), timeout: 10).outcome.error
      end
    end
  end

  # URLs as browsers have them, and as a jar is asked about them.
  ODD = {"/a|b" => "/a%7Cb", "/[x]" => "/%5Bx%5D", "/%zz" => "/%25zz", "/%" => "/%25", "/^" => "/%5E", "/a?q={}|[%]" => "/a?q=%7B%7D%7C%5B%25%5D", "/%41%7c?%20" => "/%41%7c?%20", "/a;b=c,d" => "/a;b=c,d"}.freeze
  private_constant :ODD

  test "a jar is asked about whatever can be asked for" do
    asked = []
    jar = Jar.new(cookies: ->(uri) { asked << uri.request_uri and ["a=1"] })
    serve(->(request) { answer(request).with("Set-Cookie" => "b=2") }, cookies: jar) do |server, client|
      ODD.each { |target, known| assert_equal [200, known], [client.get(server.url(target)).status, asked.last], target }
      assert_equal ODD.values.map { |known| known[/[^?]*/] }, jar.kept.map(&:first)
      assert_equal ["a=1"], server.log.map { |entry| entry.last["cookie"] }.uniq
    end
  end

  test "a body that cannot be read fails its request, and who moves it is not told" do
    {RuntimeError => "no", IOError => "closed stream", Errno::EIO => "disk"}.each do |kind, message|
      serve do |server, client|
        body = Object.new
        body.define_singleton_method(:read) { |_| raise kind, message }
        posted = client.fetch(server.url("/posted"), method: "POST", body: body)
        assert_equal Misbehaving.body_of("/other"), client.get(server.url("/other"), timeout: 20).body
        error = assert_raises(HTTP::BodyFailed, kind) { posted.value }
        assert_match(/body for #{server.url("/posted")} could not be read: .*#{message}.* \(#{kind}\)/, error.message)
        assert_instance_of kind, error.cause
      end
    end
    assert_raises(ArgumentError) { client.post("http://127.0.0.1:1/", body: 5) }
  end

  test "destinations that raise, or say nothing, fail what they were asked for" do
    [->(*) { raise "no" }, ->(*) {}, ->(*) { [] }, ->(*) { raise HTTP::ConnectFailed, "no" }].each do |refused|
      serve do |server, _|
        refusing = client(destinations: ->(host, port, addresses) { (port == server.port) ? addresses : refused.call(host, port, addresses) })
        fetch = refusing.fetch("http://127.0.0.1:9/", timeout: 10)
        assert_equal Misbehaving.body_of("/a"), refusing.get(server.url("/a"), timeout: 10).body
        assert_kind_of HTTP::ConnectFailed, fetch.outcome.error
      end
    end
  end

  test "the caller's cookies go along within an origin, and to no other; a jar is asked anew" do
    serve do |other, _|
      answers = {"/a" => redirect("/b"), "/b" => redirect(other.url("/away"))}
      serve(->(request) { answers[request.path] }) do |server, client|
        client.get(server.url("/a"), headers: {"Cookie" => "own=1", "Authorization" => "x"})
        assert_equal [["own=1", "x"]] * 2, server.log.map { |entry| entry.last.values_at("cookie", "authorization") }
        assert_equal [nil, nil], other.log.last.last.values_at("cookie", "authorization")
      end
      serve(->(request) { answers[request.path] }, cookies: Jar.new(cookies: ->(uri) { ["at=#{uri.path}"] })) do |server, client|
        client.get(server.url("/a"))
        assert_equal %w[at=/a at=/b at=/away], [*server.log, other.log.last].map { |entry| entry.last["cookie"] }
      end
    end
  end

  test "cookies that were given for one origin do not come back when another leads there again" do
    answers = {}
    serve(->(request) { answers[request.path] }) do |one, client|
      serve(->(request) { answers[request.path] }) do |two, _|
        answers.update("/a" => redirect(two.url("/b")), "/b" => redirect(one.url("/c")))
        client.get(one.url("/a"), headers: {"Cookie" => "own=1"})
        assert_equal [["/a", "own=1"], ["/c", nil]], one.log.map { |entry| [entry[2], entry.last["cookie"]] }
      end
    end
  end

  test "where the caller's cookies did not go along a jar is asked for each step" do
    serve(->(request) { redirect("/c") if request.path == "/b" }) do |two, _|
      serve(->(request) { redirect(two.url("/b")) }, cookies: Jar.new(cookies: ->(uri) { ["at=#{uri.path}"] })) do |one, client|
        client.get(one.url("/a"), headers: {"Cookie" => "own=1"})
        assert_equal %w[own=1 at=/b at=/c], [*one.log, *two.log].map { |entry| entry.last["cookie"] }
      end
    end
  end

  test "a part of what is encoded is given as it is" do
    part = Zlib.gzip("whole" * 100)[0, 20]
    serve(->(request) { Misbehaving::Answer.new("HTTP/1.1", "206 Partial Content", {"Content-Encoding" => "gzip", "Content-Range" => "bytes 0-19/99", "Content-Length" => "20"}, part) if request.path == "/part" }) do |server, client|
      response = client.get(server.url("/part"), headers: {"Range" => "bytes=0-19"})
      assert_equal [206, part, "gzip", "20"], [response.status, response.body, response["content-encoding"], response["content-length"]]
      assert_equal part, client.open(server.url("/part"), headers: {"Range" => "bytes=0-19"}, &:read)
    end
  end

  test "a body whose coding nobody knows is given as it came, and is said to be so; one that is known is undone" do
    {"none" => "plain", "utf-8" => "plain", "aws-chunked" => "plain", "UTF-8, gzip" => Zlib.gzip("plain"), "gzip, aws-chunked" => Zlib.gzip("plain")}.each do |coding, body|
      serve(->(_) { "HTTP/1.1 200 OK\r\nContent-Encoding: #{coding}\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}" }, cache: true) do |server, client|
        response = client.get(server.url("/a"))
        assert_equal [body.b, coding, body.bytesize.to_s], [response.body, response["content-encoding"], response["content-length"]], coding
        client.open(server.url("/b")) { |stream| assert_equal [coding, body.b], [stream["content-encoding"], stream.read] }
      end
    end
    serve(->(_) { "HTTP/1.1 200 OK\r\nContent-Encoding: identity, GZIP\r\nContent-Length: #{Zlib.gzip("plain").bytesize}\r\n\r\n#{Zlib.gzip("plain")}" }) do |server, client|
      assert_equal ["plain", nil], client.get(server.url("/a")).then { |response| [response.body, response["content-encoding"]] }
    end
  end

  # What servers send though they should not, and what it means.
  TAKEN = {
    "HTTP/1.1 204 x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" => "", "HTTP/1.1 204 x\r\nTransfer-Encoding: chunked\r\n\r\n" => "",
    "HTTP/1.1 200 x\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nplain" => "plain", "HTTP/1.1 200 x\r\nContent-Length: 5, 5\r\n\r\nplain" => "plain"
  }.freeze
  private_constant :TAKEN

  test "what is odd, and means one thing alone, is taken, and what comes behind it is right" do
    TAKEN.each do |bytes, body|
      serve(->(request) { bytes if request.path.start_with?("/odd") }) do |server, client|
        2.times do |round|
          paths = Array.new(6) { |i| "/#{round}-#{i}" }
          assert_equal paths.map { |path| path.start_with?("/odd") ? body : Misbehaving.body_of(path) }, client.get(paths.map { |path| server.url(path) }, timeout: 20).map { |outcome| outcome.value.body }, bytes
        end
        assert_equal %w[5].first(body.empty? ? 0 : 1), client.get(server.url("/odd")).values("content-length")
      end
    end
  end

  test "a body without a coding lasts until the connection is closed, and the connection is not used again" do
    way = Misbehaving::AsTold.new do |request, connection|
      next unless request.path == "/odd"
      connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nplain")
      connection.close
      :closed
    end
    Misbehaving.run(way) do |server|
      outcomes = client.get(%w[/a /odd /b /c].map { |path| server.url(path) }, timeout: 20)
      assert_equal [Misbehaving.body_of("/a"), "plain", Misbehaving.body_of("/b"), Misbehaving.body_of("/c")], outcomes.map { |outcome| outcome.value.body }
    end
  end

  test "who asks by another name gets nothing that was kept for the URL's, and what he gets is not kept for it" do
    serve(->(request) { answer(request).with("Cache-Control" => "max-age=60", "X-Host" => request.headers["host"]) }, cache: true) do |server, client|
      hosts = ["other.example", nil, "other.example", nil, URI(server.url).authority].map { |host| client.get(server.url("/a"), headers: {"Host" => host}.compact)["X-Host"] }
      own = URI(server.url).authority
      assert_equal ["other.example", own, "other.example", own, own], hosts
      assert_equal 3, server.log.size
    end
  end

  test "a redirect that was kept is followed, fresh or in place of an error" do
    moved = {"/fresh" => {"Cache-Control" => "max-age=60"}, "/failing" => {"Cache-Control" => "max-age=0, stale-if-error=60"}}
    seen = Hash.new(0)
    told = lambda do |request|
      fields = moved[request.path] or next
      next redirect("/there").with(fields) if (seen[request.path] += 1) == 1
      "HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n"
    end
    serve(told, cache: true) do |server, client|
      moved.each_key { |path| assert_equal [server.url("/there")] * 2, Array.new(2) { client.get(server.url(path)).url }, path }
      assert_equal({"/fresh" => 1, "/failing" => 2}, seen)
    end
  end

  test "what may only come from the cache is not asked for after a redirect either" do
    serve(->(request) { redirect("/b").with("Cache-Control" => "max-age=60") if request.path == "/a" }, cache: true) do |server, client|
      client.get(server.url("/a"), headers: {"Cache-Control" => "max-age=60"})
      asked = server.log.size
      assert_raises(HTTP::RequestFailed) { client.get(server.url("/a"), headers: {"Cache-Control" => "only-if-cached"}) }
      assert_equal asked, server.log.size
    end
  end

  test "a redirect that was kept and leads in a circle comes to an end" do
    serve(->(request) { redirect({"/a" => "/b", "/b" => "/a"}[request.path]).with("Cache-Control" => "max-age=60") }, cache: true) do |server, client|
      2.times { assert_raises(HTTP::BadRedirect) { client.get(server.url("/a")) } }
      assert_equal 2, server.log.size
    end
  end

  private

  def client(**options) = HTTP::Client.new(memory: nil, cache: false, proxy: nil, **options)

  def serve(told = ->(_) {}, **options)
    Misbehaving.run(Misbehaving::AsTold.new { |request, _| told.call(request) }) { |server| yield server, client(**options) }
  end

  def answer(request) = Misbehaving::Answer.to(request)

  def redirect(location) = Misbehaving::Answer.new("HTTP/1.1", "302 Found", {"Location" => location, "Content-Length" => "0"}, "")
end
