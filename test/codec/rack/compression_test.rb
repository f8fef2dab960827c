# frozen_string_literal: true

require "test_helper"
require "support/compressing_application"
require "rack/body_proxy"

# Which responses are compressed, and what their header fields say then.
class CodecRackCompressionTest < Minitest::Test
  TEXT = "{\"name\":\"H\u014Dryu\"}," * 200
  JSON = {"content-type" => "application/json"}.freeze

  test "a response is compressed with the coding that the client likes best, and is the same again" do
    application = answering(JSON, TEXT)
    {"gzip" => "gzip", "gzip, deflate, br, zstd" => "zstd", "gzip, deflate, br" => "br", "x-gzip" => "gzip", "br;q=0.1, gzip;q=0.2" => "gzip"}.each do |accept, name|
      answer = application.get(accept)
      assert_equal [200, name], [answer.status, answer["content-encoding"]]
      assert_equal answer.bytes.bytesize.to_s, answer["content-length"]
      assert_operator answer.bytes.bytesize, :<, TEXT.bytesize / 4
      assert_equal TEXT, answer.text
      assert_equal "Accept-Encoding", answer["vary"]
    end
  end

  test "whoever takes no coding gets the response as it is, which says that others may get another" do
    application = answering(JSON, TEXT)
    [nil, "", "deflate", "gzip;q=0", "identity", "identity, gzip;q=0.5"].each { |accept| assert_left_alone application.get(accept), accept }
  end

  test "whoever refuses even identity gets it all the same, and not a 406" do
    application = answering(JSON, TEXT)
    ["identity;q=0", "*;q=0", "deflate, *;q=0"].each { |accept| assert_left_alone application.get(accept), accept }
    assert_equal "gzip", application.get("gzip, identity;q=0")["content-encoding"]
  end

  test "hostile fields get the response as it is" do
    application = answering(JSON, TEXT)
    ["x" * 65_536, Array.new(10_000) { |index| "a#{index};q=0.5" }.join(","), "gzip;q=#{"9" * 5_000}", "\xFF\x00,;;=".b, "gzip;q=NaN"].each do |accept|
      assert_left_alone application.get(accept), accept[0, 20]
    end
  end

  test "what is smaller than the threshold is left alone, by its real size where that is known" do
    {"x" * 511 => nil, "x" * 512 => "gzip", "" => nil}.each do |text, coding|
      assert_equal [coding, text], answering(JSON, text).get.then { |answer| [answer["content-encoding"], answer.text] }
      body = CompressingApplication::Body.new(text)
      answer = CompressingApplication.new { [200, JSON.merge("content-length" => text.bytesize.to_s), body] }.get
      assert_equal [coding, text, 1], [answer["content-encoding"], answer.text, body.closed]
    end
    assert_equal "gzip", answering(JSON, "x", min_bytes: 0).get["content-encoding"]
    assert_nil answering(JSON, "", min_bytes: 0).get["content-encoding"]
    assert_equal "gzip", CompressingApplication.new { [200, JSON.dup, CompressingApplication::Body.new("x")] }.get["content-encoding"]
  end

  test "a Content-Length that is not true or no number does no harm" do
    ["3", "99999999", "", "many", "-1", "1" * 400].each do |length|
      answer = CompressingApplication.new(lint: false) { [200, JSON.merge("content-length" => length), [TEXT]] }.get
      assert_equal [answer.bytes.bytesize.to_s, TEXT], [answer["content-length"], answer.text]
    end
    answer = CompressingApplication.new(lint: false) { [200, JSON.merge("content-length" => "many"), CompressingApplication::Body.new(TEXT)] }.get
    assert_equal ["gzip", nil, TEXT], [answer["content-encoding"], answer["content-length"], answer.text]
  end

  test "types that are worth it are compressed, and what is compressed already is not" do
    worth = ["text/html", "text/html; charset=utf-8", "TEXT/CSS;x=y", "application/json", "application/problem+json", "application/vnd.api+json; ext=1", "application/xml",
      "image/svg+xml", "text/javascript", "application/javascript", "application/wasm", "application/vnd.msgpack", "application/msgpack", "application/x-msgpack",
      "application/x-mpac", "application/x-ndjson"]
    not_worth = ["image/png", "image/jpeg", "application/zip", "application/octet-stream", "video/mp4", "text/event-stream", "text/event-stream; charset=utf-8",
      "multipart/x-mixed-replace", "x-text/html", "application/jsonp/x", "", "application/pdf", "font/woff2"]
    (worth + not_worth).each do |type|
      answer = answering({"content-type" => type}, TEXT, lint: false).get
      expected = worth.include?(type) ? ["gzip", "Accept-Encoding"] : [nil, nil]
      assert_equal expected, [answer["content-encoding"], answer["vary"]], type
    end
    assert_nil answering({}, TEXT).get["content-encoding"]
  end

  test "the list of types can be another, and event streams are in none" do
    application = ->(type) { answering({"content-type" => type}, TEXT, types: ["application/x-own", "text/*", "text/event-stream"]).get["content-encoding"] }
    assert_equal ["gzip", "gzip", nil, nil], ["application/x-own", "text/a", "application/json", "text/event-stream"].map(&application)
  end

  test "what must not be transformed, has a coding, or is a part, goes through as it is" do
    body = CompressingApplication::Body.new(TEXT)
    [[200, {"cache-control" => "no-transform"}], [200, {"cache-control" => "public, NO-TRANSFORM, max-age=1"}], [200, {"content-encoding" => "br"}],
      [200, {"transfer-encoding" => "chunked"}], [206, {"content-range" => "bytes 0-3/4"}], [206, {}], [416, {"content-range" => "bytes */4"}]].each do |status, fields|
      fields = JSON.merge(fields, "etag" => '"abc"', "content-length" => "3800", "accept-ranges" => "bytes")
      got, headers, through = CompressingApplication.new(lint: false) { [status, fields, body] }.call
      assert_equal [status, fields], [got, headers.except("vary")]
      assert_same body, through
    end
    assert_equal "gzip", answering(JSON.merge("cache-control" => "x-no-transform-not"), TEXT).get["content-encoding"]
    assert_equal "gzip", answering(JSON.merge("content-encoding" => "identity"), TEXT, lint: false).get["content-encoding"]
  end

  test "responses that have no body go through as they are" do
    [100, 101, 103, 204, 205, -1].each do |status|
      response = [status, {"content-type" => "text/plain", "etag" => '"abc"'}, []]
      assert_same response, CompressingApplication.new(lint: false) { response }.call, status
    end
  end

  test "bodies with call alone, and those that take the connection over, go through untouched" do
    streaming = proc { |stream| stream.write(TEXT) }
    response = [200, {"content-type" => "text/plain"}, streaming]
    assert_same response, CompressingApplication.new(lint: false) { response }.call
    response = [200, {"content-type" => "text/plain", "rack.hijack" => proc {}}, [TEXT]]
    assert_same response, CompressingApplication.new(lint: false) { response }.call
    _, headers, body = CompressingApplication.new { [200, {"content-type" => "text/plain"}, streaming] }.call
    assert_nil headers["content-encoding"]
    body.call(StringIO.new.tap { |io| io.define_singleton_method(:close_write) {} }) if body.respond_to?(:call)
  end

  test "an application switches it off for a response, a client for a request" do
    refused = CompressingApplication.new do |env|
      env["hikyaku.compression"] = false
      [200, JSON.dup, [TEXT]]
    end
    assert_equal [nil, TEXT], refused.get.then { |answer| [answer["content-encoding"], answer.text] }
    assert_left_alone answering(JSON, TEXT).get("gzip", cache_control: "no-transform"), "of the client"
    assert_equal "gzip", answering(JSON, TEXT).get("gzip", cache_control: "no-cache")["content-encoding"]
  end

  test "Vary names the field once, whatever stood there" do
    {nil => "Accept-Encoding", "" => "Accept-Encoding", "Accept" => "Accept, Accept-Encoding", "Accept, accept-encoding" => "Accept, accept-encoding",
     "ACCEPT-ENCODING" => "ACCEPT-ENCODING", "*" => "*", "Origin,Accept" => "Origin, Accept, Accept-Encoding", "X-Accept-Encoding" => "X-Accept-Encoding, Accept-Encoding",
     ["Accept", "Origin"] => "Accept, Origin, Accept-Encoding", ["Accept", "Accept-Encoding"] => ["Accept", "Accept-Encoding"]}.each do |before, after|
      ["gzip", nil].each do |accept|
        assert_equal after, answering(before ? JSON.merge("vary" => before) : JSON, TEXT).get(accept)["vary"]
      end
    end
    assert_equal "Accept-Encoding", answering(JSON, "small").get["vary"]
  end

  test "what tells of the bytes that were not sent is taken away" do
    fields = {"content-md5" => "a", "content-digest" => "b", "repr-digest" => "c", "digest" => "d", "accept-ranges" => "bytes", "last-modified" => "e", "x-own" => "f"}
    application = answering(JSON.merge(fields), TEXT)
    assert_equal %w[content-encoding content-length content-type last-modified vary x-own], application.get.headers.keys.sort
    assert_equal fields, application.get(nil).headers.slice(*fields.keys)
  end

  test "an application's own header fields are never changed" do
    fields = {"content-type" => "text/plain", "etag" => '"abc"', "vary" => "Accept", "content-length" => TEXT.bytesize.to_s}.freeze
    application = CompressingApplication.new(lint: false) { [200, fields, [TEXT]].freeze }
    2.times { assert_equal ["gzip", '"abc-gzip"'], application.get.headers.values_at("content-encoding", "etag") }
    assert_equal ['"abc"', nil], application.get(nil).headers.values_at("etag", "content-encoding")
  end

  test "a request with Range is answered without a coding, which would have other ranges" do
    fields = JSON.merge("accept-ranges" => "bytes", "etag" => '"abc"')
    answer = answering(fields, TEXT).get("gzip", range: "bytes=0-3")
    assert_left_alone answer, "ranged"
    assert_equal ['"abc"', "bytes"], answer.headers.values_at("etag", "accept-ranges")
  end

  test "what cannot be used is refused when the middleware is made" do
    coding = Hikyaku::Codec::Coding
    assert_raises(coding::Unknown) { answering(JSON, TEXT, codings: %i[gzip deflate]) }
    assert_raises(coding::Unknown) { answering(JSON, TEXT, levels: {deflate: 1}) }
    assert_raises(coding::InvalidLevel) { answering(JSON, TEXT, levels: {gzip: 10}) }
    assert_equal "gzip", answering(JSON, TEXT, codings: %i[gzip]).get("zstd, br, gzip")["content-encoding"]
    sizes = [1, 9].map { |level| answering(JSON, Array.new(300) { |index| %({"id":#{index},"name":"#{index * 7919 % 997}"}) }.join, levels: {gzip: level}).get.bytes.bytesize }
    assert_operator sizes.last, :<, sizes.first
  end

  test "an error of the application is its own" do
    assert_raises(IOError) { CompressingApplication.new { raise IOError }.get }
  end

  private

  def answering(headers, text, **options) = CompressingApplication.new(**options) { [200, headers.dup, [text]] }

  def assert_left_alone(answer, what)
    assert_equal [200, nil, "Accept-Encoding", TEXT], [answer.status, answer["content-encoding"], answer["vary"], answer.text], what
  end
end
