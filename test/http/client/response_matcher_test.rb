# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client/response_matcher"
require "hikyaku/http/client/transaction"
require "hikyaku/http/parser"
require "hikyaku/http/request"

class HTTPClientResponseMatcherTest < Minitest::Test
  Client = Hikyaku::HTTP::Client
  private_constant :Client

  test "an answer that says nothing of itself is believed" do
    [200, 404, 500, 301].each { |status| assert_nil doubt("/a.png", answer({}, status: status), others: ["/b.css", "/c"]) }
    assert_nil doubt("/a.png", answer({"Content-Location" => "/b", "Content-Type" => "text/css", "ETag" => '"b"'}))
  end

  test "nothing has changed only where that was asked" do
    unchanged = answer({}, status: 304)
    assert_match(/304/, doubt("/a", unchanged))
    assert_match(/304/, doubt("/a", unchanged, headers: {"If-Match" => '"a"', "Range" => "bytes=0-1"}))
    assert_nil doubt("/a", unchanged, headers: {"If-None-Match" => '"a"'})
    assert_nil doubt("/a", unchanged, headers: {"If-Modified-Since" => "Thu, 01 Jan 1970 00:00:00 GMT"})
  end

  test "a part comes only where one was asked for" do
    part = answer({"Content-Range" => "bytes 0-1/9"}, status: 206)
    assert_match(/part/, doubt("/a", part))
    assert_nil doubt("/a", part, headers: {"Range" => "bytes=0-1"})
  end

  # What Content-Location says of an answer to /d/a, where /d/b, /c?x and http://other.example/ were asked for as well; whether it is doubted.
  LOCATIONS = {
    "/d/a" => false, "a" => false, "" => false, "#b" => false, "http://a.example/d/a" => false, "HTTP://A.example:80/d/../d/a#x" => false, "/d/nobody" => false, "a.en.html" => false,
    "http://nobody.example/d/b" => false, "/d/b?" => false, "/c" => false, "https://a.example/d/b" => false, "/D/B" => false,
    "/d/b" => true, "b" => true, "./b" => true, "http://a.example/d/b" => true, "//a.example/d/b#x" => true, "/c?x" => true, "http://other.example" => true,
    "http://[" => false, "http://" => false, "\xFF".b => false, "javascript:b" => false, "a" * 30_000 => false, "b, b" => false
  }.freeze
  private_constant :LOCATIONS

  test "what says that it is what another asked for is doubted, and nothing else of what Content-Location may say" do
    LOCATIONS.each do |location, doubted|
      found = doubt("/d/a", answer({"Content-Location" => location}), others: ["/d/b", "/c?x", "http://other.example/"])
      assert_equal doubted, !found.nil?, location[0, 60].inspect
      assert_match(/Content-Location/, found) if doubted
    end
  end

  # Asked for, its answer's type, what was asked as well, whether it is doubted.
  TYPES = [
    ["/a.png", "image/png", "/b.css", false], ["/a.png", "image/webp", "/b.webp", false], ["/a.png", "IMAGE/PNG", "/b.css", false],
    ["/a.png", "text/css", "/b.css", true], ["/a.PNG", "Text/CSS; charset=utf-8", "/b.CSS?x", true], ["/a.png", "text/css", "/b.js", false], ["/a.png", "text/css", "/b", false],
    ["/a.png", "text/html", "/b.html", true], ["/a.png", "text/html", "/b.htm", true], ["/a.png", "text/html", "/", false],
    ["/a.css", "image/gif", "/b.gif", true], ["/a.css", "image/gif", "/b.png", true], ["/a.css", "image/svg+xml", "/b.svg", true], ["/a.css", "text/css", "/b.gif", false],
    ["/a.js", "application/javascript; charset=utf-8", "/b.css", false], ["/a.js", "text/javascript", "/b.css", false], ["/a.mjs", "application/x-javascript", "/b.css", false],
    ["/a.js", "text/ecmascript", "/b.css", false], ["/a.js", "text/css", "/b.css", true], ["/a.js", "text/plain", "/b.txt", false],
    ["/a.svg", "image/svg+xml", "/b.png", false], ["/a.svg", "image/png", "/b.png", true], ["/a.html", "application/xhtml+xml", "/b.css", false],
    ["/a.json", "application/ld+json", "/b.html", false], ["/a.json", "application/json", "/b.html", false], ["/a.json", "text/html", "/b.html", true],
    ["/a.woff2", "font/woff2", "/b.css", false], ["/a.woff", "application/x-font-woff", "/b.css", false], ["/a.ttf", "application/font-sfnt", "/b.css", false],
    ["/a.woff2", "text/css", "/b.css", true], ["/a.png", "application/octet-stream", "/b.css", false], ["/a.png", "", "/b.css", false], ["/a.png", ";", "/b.css", false],
    ["/page", "text/css", "/b.css", false], ["/a.php", "image/png", "/b.png", false], ["/a.unknown", "image/png", "/b.png", false], ["/", "text/css", "/b.css", false],
    ["/a.png", "x text/css", "/b.css", false], ["/a.css", "image", "/b.gif", false], ["/a.css", "\xFF".b, "/b.gif", false]
  ].freeze
  private_constant :TYPES

  test "a type that suits another and not this is doubted" do
    TYPES.each do |path, type, other, doubted|
      found = doubt(path, answer({"Content-Type" => type}), others: [other])
      assert_equal doubted, !found.nil?, [path, type, other].inspect
      assert_match(/type/, found) if doubted
    end
  end

  test "what went wrong may have any type" do
    [404, 403, 500, 503, 301, 204].each { |status| assert_nil doubt("/a.png", answer({"Content-Type" => "text/html"}, status: status), others: ["/b.html"]) }
  end

  A = "http://a.example/a"
  B = "http://a.example/b"
  private_constant :A, :B

  test "an entity tag that is known of another, and not of this, is doubted" do
    known = {A => ['"a"', '"a2"'], B => ['"b"', '"both"']}
    {'"a"' => false, '"a2"' => false, '"new"' => false, 'W/"b"' => false, "b" => false, "" => false, '"b"' => true, '"both"' => true}.each do |tag, doubted|
      found = doubt("/a", answer({"ETag" => tag}), others: ["/b"], tags: tags_of(known))
      assert_equal doubted, !found.nil?, tag
      assert_match(/tag/, found) if doubted
    end
    assert_nil doubt("/a", answer({"ETag" => '"both"'}), others: ["/b"], tags: tags_of({A => ['"both"'], B => ['"both"']}))
  end

  test "an entity tag tells nothing where nothing was asked beside it, or nothing is known" do
    assert_nil doubt("/a", answer({"ETag" => '"b"'}), tags: tags_of({A => ['"a"'], B => ['"b"']}))
    assert_nil doubt("/a", answer({"ETag" => '"b"'}), others: ["/b"], tags: tags_of({}))
    assert_nil doubt("/a", answer({"ETag" => '"b"'}), others: ["/b"])
    assert_nil doubt("/a", answer({}), others: ["/b"], tags: tags_of({B => ['"b"']}))
  end

  private

  def tags_of(known)
    Client::EntityTags.new.tap { |tags| known.each { |url, all| all.each { |tag| tags.note(url, tag) } } }
  end

  def exchange(path, headers = {})
    url = path.start_with?("/") ? "http://a.example#{path}" : path
    Client::Exchange.new(Hikyaku::HTTP::Request.new("GET", url, headers: headers), nil, number: 0)
  end

  def answer(fields, status: 200)
    head = fields.inject("HTTP/1.1 #{status} x\r\n".b) { |lines, (name, value)| lines << name << ": " << value << "\r\n" }
    (Hikyaku::HTTP::Parser.new(:response) << head << "\r\n").next
  end

  def doubt(path, response, headers: {}, others: [], tags: nil)
    own = exchange(path, headers)
    Client::ResponseMatcher.doubt(own, response, [own, *others.map { |other| exchange(other) }], tags: tags)
  end
end
