# frozen_string_literal: true

require "test_helper"
require "stringio"
require "tempfile"
require "zlib"
require "hikyaku/http/request"

class HTTPRequestTest < Minitest::Test
  Request = Hikyaku::HTTP::Request
  URL = "http://example.com/a"
  private_constant :Request, :URL

  test "a request is a value" do
    request = Request.new(:get, URL, headers: {"Accept" => +"a"}, body: +"b")
    assert request.frozen? && request.headers.frozen? && request.headers.flatten.all?(&:frozen?) && request.headers.all?(&:frozen?) && request.body.frozen?
    assert_equal ["GET", "http://example.com/a"], [request.method, request.address.url]
  end

  # Whether asking changes nothing, may be repeated, may stand among others, may be shared.
  METHODS = {
    "GET" => [true, true, true, true], "HEAD" => [true, true, true, true], "OPTIONS" => [true, true, true, false], "TRACE" => [true, true, true, false],
    "PUT" => [false, true, false, false], "DELETE" => [false, true, false, false], "POST" => [false, false, false, false], "PATCH" => [false, false, false, false],
    "PROPFIND" => [false, false, false, false], "X" => [false, false, false, false], "GETS" => [false, false, false, false]
  }.freeze
  private_constant :METHODS

  test "methods are what the specification says of them, in any case" do
    METHODS.each do |method, expected|
      [method, method.downcase, method.capitalize.to_sym].each do |name|
        request = Request.new(name, URL)
        assert_equal [method, *expected], [request.method, request.safe?, request.idempotent?, request.pipelined?, request.shared?], name.inspect
      end
    end
  end

  test "what wants a connection to itself is neither pipelined nor shared" do
    [{alone: true}, {body: ""}, {body: "x"}, {body: StringIO.new("x")}].each do |options|
      request = Request.new("GET", URL, **options)
      refute_predicate request, :pipelined?, options.inspect
      refute_predicate request, :shared?, options.inspect
      assert_predicate request, :safe?
    end
  end

  test "what can be read but once is not repeated" do
    %w[GET PUT DELETE].each do |method|
      assert_predicate Request.new(method, URL, body: "x"), :idempotent?
      refute_predicate Request.new(method, URL, body: StringIO.new("x")), :idempotent?
    end
    assert_predicate Request.new("PUT", URL, body: StringIO.new("x")), :once?
    refute_predicate Request.new("PUT", URL, body: "x"), :once?
    refute_predicate Request.new("PUT", URL), :once?
  end

  # Bytes that are left of a body.
  SIZED = {
    5 => [-> { StringIO.new("12345") }, -> { StringIO.new("\u00e912345").tap { |io| io.read(2) } }, -> { file("12345") }, -> { file("1234567").tap { |io| io.read(2) } },
      -> { Tempfile.new.tap { |io| (io << "12345").rewind } }, -> { said(size: 5) }, -> { said(bytesize: 5, size: 4) },
      -> { said(size: 7, pos: 2) }],
    0 => [-> { StringIO.new }, -> { StringIO.new("12").tap(&:read) }, -> { StringIO.new("12").tap { |io| io.pos = 9 } }, -> { file("") }],
    nil => [-> { IO.pipe.first }, -> { File.open(File::NULL) }, -> { Struct.new(:all) { def read(_) = nil }.new([]) }, -> { said(size: nil) }, -> { said(size: 1.5) }, -> { said(size: -1) },
      -> { said(pos: 1) }, -> { file("12345").tap(&:close) }, -> { Zlib::GzipReader.new(StringIO.new(Zlib.gzip("12345"))) }]
  }.freeze
  private_constant :SIZED

  test "how much of a body is left is known where it says so" do
    SIZED.each { |bytes, bodies| bodies.each_with_index { |body, i| assert_same_or_nil bytes, Request.new("PUT", URL, body: instance_exec(&body)).length, i } }
    assert_equal File.size(__FILE__), Request.new("PUT", URL, body: IO.for_fd(IO.sysopen(__FILE__))).length
    assert_nil Request.new("PUT", URL, body: File.open("/proc/self/status")).length if File.exist?("/proc/self/status")
    [nil, "12345"].each { |body| assert_nil Request.new("PUT", URL, body: body).length }
  end

  test "the caller may say how long a body is that is read, once, as a number" do
    request = Request.new("PUT", URL, headers: {"Content-Length" => 7}, body: IO.pipe.first)
    assert_equal [7, "7"], [request.length, request["content-length"]]
    assert_equal 7, request.redirected(request.address).length
    assert_equal 2, Request.new("PUT", URL, headers: {"Content-Length" => "2"}, body: StringIO.new("12345")).length
    ["", "-1", "+1", "1.0", "0x5", "5, 5", "five", "1" * 19].each { |length| assert_unannounced(length, StringIO.new("12345")) }
    [["Content-Length", "5"]].product([["content-length", "5"], ["CONTENT-LENGTH", "6"]]).each do |fields|
      assert_raises(ArgumentError) { Request.new("PUT", URL, headers: fields, body: StringIO.new("12345")) }
    end
    [nil, "12345"].each { |body| assert_unannounced("5", body) }
  end

  test "what is no method is refused" do
    ["", " ", "GE T", "GET ", " GET", "GET\n", "GET\r\nX: y", "G\0", "GET/", "GET:", "(GET)", "G\u00C9T", "\u00DF\u00DF ", "\xFF", "X" * 33, "CONNECT", :connect, nil, []].each do |method|
      error = assert_raises(ArgumentError, method.inspect) { Request.new(method, URL) }
      assert_operator error.message.bytesize, :<, 200
    end
    assert_equal "X" * 32, Request.new("X" * 32, URL).method
  end

  test "what is no URL is refused" do
    ["", "/a", "ftp://example.com/", nil, "http://", "http://a:x"].each { |url| assert_raises(Hikyaku::HTTP::InvalidURL, url.inspect) { Request.new("GET", url) } }
  end

  test "a priority is a number, and a body something that can be sent" do
    [0, -5, 1.5, nil].each { |priority| assert_equal priority || 3, Request.new("GET", "http://example.com/a.gif", priority: priority).priority }
    ["1", :high, Float::NAN, Float::INFINITY, Complex(1, 1), [], true].each { |priority| assert_match(/priority/, assert_raises(ArgumentError, priority.inspect) { Request.new("GET", URL, priority: priority) }.message) }
    [5, :body, ["a"], {"a" => 1}].each { |body| assert_match(/body/, assert_raises(ArgumentError, body.inspect) { Request.new("POST", URL, body: body) }.message) }
  end

  test "fields may be given in several ways" do
    expected = [["accept", "a"], ["x-y", "1"], ["x-y", "2"], ["n", "5"]]
    [
      {"Accept" => "a", "X-Y" => %w[1 2], "n" => 5},
      {Accept: " a\t", "X-Y": [1, "2 "], n: "5", none: nil, empty: []},
      [["Accept", "a"], ["X-Y", "1"], ["x-y", "2"], ["N", 5]]
    ].each { |headers| assert_equal expected, Request.new("GET", URL, headers: headers).headers }
    assert_equal [], Request.new("GET", URL).headers
  end

  test "the first value of a field is found by its name" do
    request = Request.new("GET", URL, headers: {"X-Y" => %w[1 2]})
    assert_equal ["1", nil], [request["x-y"], request["x"]]
  end

  test "values are binary, may be empty, have tabs and bytes beyond ASCII" do
    request = Request.new("GET", URL, headers: {"a" => "\u00FC", "b" => "x\ty z", "c" => "", "d" => "\xFF".b, "e" => " \t "})
    assert_equal [["a", "\u00FC".b], ["b", "x\ty z"], ["c", ""], ["d", "\xFF".b], ["e", ""]], request.headers
    assert_equal [Encoding::BINARY], request.headers.map { |_, value| value.encoding }.uniq
  end

  test "what cannot be the name of a field is refused" do
    ["", " ", "a b", "a:", ":a", "a\r\nb", "a\n", "\0", "a\0", "a\t", "\u00E9", "\xFF", "a(", "\"a\"", "a/b", "[a]", "a=b", "a,b"].each do |name|
      assert_raises(ArgumentError, name.inspect) { Request.new("GET", URL, headers: {name => "x"}) }
    end
    assert_raises(ArgumentError) { Request.new("GET", URL, headers: [["", "x"]]) }
    Request.new("GET", URL, headers: {"!#$%&'*+-.^_`|~0aZ" => "x"})
  end

  test "what cannot be the value of a field is refused, and not shown" do
    ["secret\r\nX: y", "secret\nx", "secret\rx", "secret\0x", "secret\x7Fx", "secret\x1Fx", "secret\x0Bx", "secret\x08x", "secret\u0001\u00FC", "\r\nsecret\r\n x"].each do |value|
      [value, value.b, ["fine", value]].each do |given|
        message = assert_raises(ArgumentError, value.inspect) { Request.new("GET", URL, headers: {"X-Y" => given}) }.message
        assert_includes message, "x-y"
        refute_includes message, "secret"
      end
    end
  end

  test "what frames messages, or belongs to the connection, cannot be given" do
    %w[Connection content-length Keep-Alive PROXY-CONNECTION te Trailer Transfer-Encoding upgrade expect].each do |name|
      [name, name.downcase, name.upcase, name.to_sym].each do |given|
        assert_raises(ArgumentError, given.inspect) { Request.new("GET", URL, headers: {given => "x"}) }
      end
    end
  end

  test "there may be 100 fields, and not one more" do
    assert_equal 100, Request.new("GET", URL, headers: {"a" => ["x"] * 100}).headers.size
    [{"a" => ["x"] * 101}, (0..100).to_h { |i| ["a#{i}", "x"] }, [["a", "x"]] * 101].each do |headers|
      assert_raises(ArgumentError) { Request.new("GET", URL, headers: headers) }
    end
  end

  test "the caller's strings are not kept: they may change afterwards" do
    body, value, headers = +"body", +"value", {}
    headers["a"] = value
    request = Request.new("POST", URL, headers: headers, body: body)
    [body, value].each { |string| string.replace("changed") }
    headers["b"] = "x"
    assert_equal ["body", [["a", "value"]]], [request.body, request.headers]
    assert_equal Encoding::BINARY, request.body.encoding
  end

  test "what a page cannot be shown without comes first" do
    {"/" => 0, "/page" => 0, "/a.html" => 0, "/a.HTM" => 0, "/a.php?x" => 0, "/a.css" => 1, "/a.js" => 1, "/a.mjs" => 1, "/a.woff2" => 2, "/a.woff" => 2, "/a.png" => 3,
     "/a.json" => 3, "/a.unknown" => 3}.each { |path, priority| assert_equal priority, Request.new("GET", "http://example.com#{path}").priority, path }
    assert_equal 7, Request.new("GET", "http://example.com/a.css", priority: 7).priority
    assert_equal 0, Request.new("GET", "http://example.com/a.png", priority: 0).priority
  end

  test "requests that have the same answer have the same key" do
    key = Request.new("GET", URL, headers: {"Accept" => "a"}).key
    assert_equal key, Request.new(:get, "HTTP://example.com:80/x/../a#b", headers: {"accept" => " a"}, priority: 9).key
    assert_equal key.hash, Request.new("GET", URL, headers: [["ACCEPT", "a"]]).key.hash
    [Request.new("HEAD", URL, headers: {"Accept" => "a"}), Request.new("GET", URL), Request.new("GET", URL, headers: {"Accept" => "b"}),
      Request.new("GET", "#{URL}?", headers: {"Accept" => "a"}), Request.new("GET", "https://example.com/a", headers: {"Accept" => "a"})].each do |other|
      refute_equal key, other.key, other.inspect
    end
  end

  test "a redirect changes what it says, and leaves the rest" do
    request = Request.new("POST", URL, headers: {"a" => "x"}, body: "body", priority: 5)
    address = Hikyaku::HTTP::Address.parse("https://other.example/b.css")
    followed = request.redirected(address)
    assert_equal ["POST", address, [["a", "x"]], "body", 5], [followed.method, followed.address, followed.headers, followed.body, followed.priority]
    followed = request.redirected(address, method: "GET", headers: [], body: nil)
    assert_equal ["GET", [], nil], [followed.method, followed.headers, followed.body]
    assert_predicate Request.new("GET", URL).redirected(address), :shared?
    refute_predicate Request.new("GET", URL, alone: true).redirected(address), :pipelined?
  end

  test "inspect shows nothing that may be secret" do
    request = Request.new("POST", "http://user:secret@example.com/a", headers: {"Authorization" => "secret"}, body: "secret")
    refute_includes request.inspect, "secret"
    assert_includes request.inspect, "POST http://example.com/a"
  end

  private

  # It is not flushed yet.
  def file(text) = Tempfile.create("body").tap { |io| File.unlink((io << text).path) && io.rewind }

  def said(**what)
    Object.new.tap { |body| {read: nil, **what}.each { |name, value| body.define_singleton_method(name) { |*| value } } }
  end

  def assert_same_or_nil(expected, given, message) = expected.nil? ? assert_nil(given, message) : assert_equal(expected, given, message)

  def assert_unannounced(length, body)
    assert_match(/content-length/, assert_raises(ArgumentError, length) { Request.new("PUT", URL, headers: {"Content-Length" => length}, body: body) }.message)
  end
end
