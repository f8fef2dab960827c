# frozen_string_literal: true

require "test_helper"
require "io/wait"
require "support/misbehaving"

class MisbehavingTest < Minitest::Test
  test "one that behaves answers each request as it should, and remembers it" do
    Misbehaving.run(:well_behaved) do |server|
      assert_equal "http://127.0.0.1:#{server.port}/a", server.url("/a")
      assert_equal answer("/a.png") + answer("/b?c.js"), talk(server, get("/a.png") + get("http://x/b?c.js"))
      assert_equal "HTTP/1.1 200 OK\r\nContent-Type: text/css\r\nETag: #{Misbehaving.etag_of("/a.css")}\r\nContent-Length: #{Misbehaving.body_of("/a.css").bytesize}\r\n\r\n",
        talk(server, get("/a.css", method: "HEAD"))
      tag = Misbehaving.etag_of("/a")
      assert_equal "HTTP/1.1 304 Not Modified\r\nETag: #{tag}\r\n\r\n", talk(server, get("/a", "If-None-Match: \"x\", #{tag}"))
      posts = [get("/p", "Content-Length: 3", method: "POST") + "abc", get("/q", "Transfer-Encoding: chunked", method: "PUT") + "1\r\n0\r\n0\r\n\r\n"]
      assert_match(/\r\n\r\nPOST \/p\n.*\r\n\r\nPUT \/q\n\z/m, talk(server, posts.join))
      assert_equal [[1, "GET", "/a.png"], [1, "GET", "http://x/b?c.js"], [2, "HEAD", "/a.css"], [3, "GET", "/a"], [4, "POST", "/p"], [4, "PUT", "/q"]],
        server.log.map { |entry| entry.take(3) }
      assert_equal({"host" => "x", "if-none-match" => "\"x\", #{tag}"}, server.log[3].last)
      assert_equal 4, server.connections
    end
  end

  test "bodies name their paths" do
    bodies = (0..99).map { |index| Misbehaving.body_of("/#{index}") }
    assert_equal 100, bodies.uniq.size
    assert_operator bodies.map(&:bytesize).uniq.size, :>, 20
    assert_includes Misbehaving.body_of("/a?b"), "/a?b"
  end

  test "one closes after so many answers, and does not say so unless told" do
    Misbehaving.run(:closes_after, n: 2) do |server|
      assert_equal answer("/a") + answer("/b"), talk(server, get("/a") + get("/b") + get("/c"), shut: false)
      assert_equal %w[/a /b /c], server.log.map { |entry| entry[2] }
    end
    Misbehaving.run(:closes_after, announced: true) { |server| assert_includes talk(server, get("/a"), shut: false), "\r\nConnection: close\r\n" }
  end

  test "one speaks HTTP/1.0" do
    Misbehaving.run(:http_10) { |server| assert_equal answer("/a").sub("1.1", "1.0"), talk(server, get("/a") + get("/b"), shut: false) }
    Misbehaving.run(:http_10, length: false) { |server| refute_includes talk(server, get("/a"), shut: false), "Content-Length" }
    Misbehaving.run(:http_10, kept: true) do |server|
      assert_equal 2, talk(server, get("/a") + get("/b")).scan(/^HTTP\/1\.0 200 OK\r\n.*?^Connection: keep-alive\r\n/m).size
    end
  end

  test "one forgets the second request of what came together, and answers it when it comes alone" do
    Misbehaving.run(:discards_second) do |server|
      assert_equal answer("/a"), talk(server, get("/a") + get("/b"))
      with(server) do |socket|
        socket.write(get("/a"))
        assert_equal answer("/a"), socket.read(answer("/a").bytesize)
        socket.write(get("/b"))
        assert_equal answer("/b"), socket.read(answer("/b").bytesize)
      end
    end
  end

  test "one answers two requests in the wrong order, and reveals it or not" do
    both = get("/a.css") + get("/b.js")
    {content_location: "Content-Location: /b.js", etag: "ETag: #{Misbehaving.etag_of("/b.js")}", type: "Content-Type: text/javascript", nothing: "HTTP/1.1"}.each do |reveals, line|
      Misbehaving.run(:answers_out_of_order, reveals: reveals) do |server|
        first = talk(server, both).split(/(?=HTTP)/)
        assert_equal [Misbehaving.body_of("/b.js"), Misbehaving.body_of("/a.css")], first.map { |text| text.split("\r\n\r\n", 2).last }
        assert_includes first.first, line
        others = ["Content-Location", "ETag", "text/javascript"].count { |word| first.first.include?(word) }
        expected = (reveals == :nothing) ? 0 : 1
        assert_equal expected, others
      end
    end
    Misbehaving.run(:answers_out_of_order, seconds: 0.001) { |server| assert_includes talk(server, get("/a")), Misbehaving.body_of("/a") }
  end

  test "one hangs on the second" do
    Misbehaving.run(:hangs_on_second) do |server|
      with(server) do |socket|
        socket.write(get("/a") + get("/b"))
        assert_equal answer("/a"), socket.read(answer("/a").bytesize)
        assert_nil socket.wait_readable(0.02)
      end
      assert_equal %w[/a /b], server.log.map { |entry| entry[2] }
    end
  end

  test "one sends a bad chunk" do
    Misbehaving.run(:bad_chunk) do |server|
      text = talk(server, get("/a"))
      assert_match(/^Transfer-Encoding: chunked\r\n/, text)
      assert_match(/\r\nxyz\r\n/, text)
      refute_includes text, "Content-Length"
    end
  end

  test "one breaks off in the middle" do
    Misbehaving.run(:resets) { |server| assert_raises(Errno::ECONNRESET) { talk(server, get("/a"), shut: false) } }
  end

  test "one sends interim responses first" do
    Misbehaving.run(:interim_first) do |server|
      text = talk(server, get("/a"))
      assert text.start_with?("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: "), text
      assert text.end_with?("\r\n\r\n#{answer("/a")}"), text
    end
  end

  test "one sends bodies where there are none" do
    Misbehaving.run(:head_with_body) do |server|
      assert_equal answer("/a"), talk(server, get("/a", method: "HEAD"))
      assert_equal answer("/a"), talk(server, get("/a"))
    end
    Misbehaving.run(:not_modified_with_body) do |server|
      text = talk(server, get("/a", "If-None-Match: #{Misbehaving.etag_of("/a")}"))
      assert_match(/\AHTTP\/1\.1 304 Not Modified\r\n.*\r\n\r\n#{Misbehaving.body_of("/a")}\z/m, text)
      assert_equal answer("/a"), talk(server, get("/a"))
    end
  end

  test "one gives no length" do
    Misbehaving.run(:close_delimited) do |server|
      text = talk(server, get("/a") + get("/b"), shut: false)
      refute_match(/^(?:Content-Length|Transfer-Encoding|Connection)/, text)
      assert text.end_with?("\r\n\r\n#{Misbehaving.body_of("/a")}"), text
    end
  end

  test "one calls gzip what is none" do
    Misbehaving.run(:wrong_gzip) { |server| assert_match(/^Content-Encoding: gzip\r\n\r\n#{Misbehaving.body_of("/a")}\z/, talk(server, get("/a"))) }
  end

  test "one thinks before it answers" do
    Misbehaving.run(:slow_first_byte, seconds: 0.1) do |server|
      with(server) do |socket|
        socket.write(get("/a"))
        assert_nil socket.wait_readable(0)
        assert_equal answer("/a"), socket.read(answer("/a").bytesize)
      end
    end
    Misbehaving.run(:slow_first_byte, n: 2, seconds: 0.01) { |server| assert_equal answer("/a") + answer("/b"), talk(server, get("/a") + get("/b")) }
  end

  test "one says how many requests a connection may have" do
    Misbehaving.run(:keep_alive_max, max: 3) do |server|
      text = talk(server, get("/a") + get("/b") + get("/c") + get("/d"), shut: false)
      assert_equal ["Keep-Alive: timeout=5, max=2", "Keep-Alive: timeout=5, max=1", "Connection: close"], text.scan(/^(?:Keep-Alive|Connection): [^\r]*/)
      assert_equal 3, text.scan("HTTP/1.1 200").size
    end
  end

  test "one closes a connection that it kept open when the next request comes" do
    Misbehaving.run(:closes_kept_open) do |server|
      with(server) do |socket|
        socket.write(get("/a"))
        assert_equal answer("/a"), socket.read(answer("/a").bytesize)
        assert_nil socket.wait_readable(0.02)
        socket.write(get("/b"))
        assert_equal "", socket.read
      end
    end
  end

  test "one sends empty lines between answers, one more than it announced" do
    Misbehaving.run(:stray_line_end) { |server| assert_equal "#{answer("/a")}\r\n#{answer("/b")}\r\n", talk(server, get("/a") + get("/b")) }
    Misbehaving.run(:extra_bytes, bytes: "xyz") { |server| assert_equal "#{answer("/a")}xyz#{answer("/b")}", talk(server, get("/a") + get("/b")) }
  end

  test "one announces more than it sends" do
    Misbehaving.run(:promises_more) do |server|
      head, body = talk(server, get("/a") + get("/b"), shut: false).split("\r\n\r\n", 2)
      assert_equal Misbehaving.body_of("/a"), body
      assert_includes head, "\r\nContent-Length: #{body.bytesize + 10}"
    end
  end

  test "one says that it closes, and answers on" do
    Misbehaving.run(:goes_on_after_close) do |server|
      text = talk(server, get("/a") + get("/b"))
      assert_equal 1, text.scan("\r\nConnection: close\r\n").size
      assert text.end_with?(answer("/b")), text
    end
  end

  test "one answers the second with an error" do
    Misbehaving.run(:refuses_second, status: 501) do |server|
      assert_equal "#{answer("/a")}HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", talk(server, get("/a") + get("/b") + get("/c"), shut: false)
    end
    Misbehaving.run(:refuses_second, announced: false) { |server| refute_includes talk(server, get("/a") + get("/b"), shut: false), "Connection" }
  end

  test "one answers a request that was not made, when none comes" do
    Misbehaving.run(:times_out_idle, seconds: 0.01) do |server|
      assert_equal "#{answer("/a")}HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", talk(server, get("/a"), shut: false)
      assert_equal 1, server.log.size
    end
  end

  test "one misbehaves at random, and with the same seed the same" do
    harmless = %i[extra_bytes stray_line_end wrong_gzip bad_chunk interim_first goes_on_after_close]
    runs = Array.new(2) do
      random = Misbehaving::Random.new(7, only: harmless)
      Misbehaving.run(random) { |server| [random.paths(40).map { |path| talk(server, get(path) + get("#{path}2")) }, random.taken, random.paths(40)] }
    end
    assert_equal runs.first, runs.last
    assert_operator runs.first[1].size, :>, 5
    assert_equal 40, runs.first[2].uniq.size
    refute_equal Misbehaving::Random.new(7).paths(3), Misbehaving::Random.new(8).paths(3)
  end

  # A mistake in one of them is raised when its server is closed.
  test "every way that chance may take goes to its end" do
    requests = get("/a") + get("/a", method: "HEAD") + get("/a", "If-None-Match: #{Misbehaving.etag_of("/a")}") + get("/p", "Content-Length: 0", method: "POST")
    Misbehaving::Random::WAYS.each_key do |way|
      random = Misbehaving::Random.new(1, odds: 1.0, only: [way])
      Misbehaving.run(random) do |server|
        2.times { talk(server, requests) }
      rescue Errno::ECONNRESET
        assert_equal :resets, way
      end
      assert_equal [way], random.taken.map(&:last).uniq
    end
  end

  private

  def get(path, *fields, method: "GET") = "#{["#{method} #{path} HTTP/1.1", "Host: x", *fields].join("\r\n")}\r\n\r\n"

  def answer(path) = Misbehaving::Answer.to(Misbehaving::Request.new("GET #{path} HTTP/1.1")).bytes

  def with(server)
    socket = TCPSocket.new("127.0.0.1", server.port)
    yield socket
  ensure
    socket&.close
  end

  # Writes all at once, and reads until the server closes; where it does not by itself, it does when it has read all.
  def talk(server, bytes, shut: true)
    with(server) do |socket|
      socket.write(bytes)
      socket.close_write if shut
      socket.read
    end
  end
end
