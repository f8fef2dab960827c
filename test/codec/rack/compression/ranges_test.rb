# frozen_string_literal: true

require "test_helper"
require "rack/files"
require "support/compressing_application"
require "tmpdir"
require "time"

# Nobody puts the beginning of a coded representation together with the rest of one that is not. RFC 9110, sections 8.8.1, 13.1.5 and 14.2.
class CodecRackCompressionRangesTest < Minitest::Test
  TEXT = Array.new(400) { |index| "{\"id\":#{index}}," }.join
  DATE = Time.utc(2024, 1, 2, 3, 4, 5).httpdate
  JSON = {"content-type" => "application/json", "last-modified" => DATE, "accept-ranges" => "bytes"}.freeze
  ANOTHER = Time.utc(2024, 1, 2, 3, 4, 6).httpdate

  test "a date is no proof of what the client has: it gets everything, with a coding if it likes" do
    [["gzip", "gzip"], ["br", "br"], [nil, nil], ["identity", nil]].each do |accept, coding|
      answer = ranged.get(accept, range: "bytes=10-19", if_range: DATE)
      assert_equal [200, coding, TEXT, nil], [answer.status, answer["content-encoding"], answer.text, answer["content-range"]]
      assert_equal "Accept-Encoding", answer["vary"]
    end
    assert_equal [TEXT, 200], ranged.get("gzip", range: "bytes=10-19", if_range: ANOTHER).then { |answer| [answer.text, answer.status] }
  end

  test "nor is a weak tag, the tag of a coding, or what is no validator, even where the application looks at nothing" do
    ['W/"abc"', '"abc-gzip"', '"abc-br"', '"abc-zstd" ', "yesterday", "", "abc", '"a"b"'].each do |validator|
      [ranged, careless].each do |application|
        answer = application.get("gzip", range: "bytes=10-19", if_range: validator)
        assert_equal [200, TEXT], [answer.status, answer.text], validator
      end
    end
  end

  test "with a strong tag of the application's own, or without a condition, a part is sent as it is" do
    [{}, {if_range: '"abc"'}, {if_range: ' "abc" '}].each do |fields|
      %w[gzip br zstd].each do |accept|
        answer = ranged.get(accept, range: "bytes=10-19", **fields)
        assert_equal [206, TEXT[10..19]], [answer.status, answer.bytes]
        assert_equal [nil, '"abc"', "Accept-Encoding"], answer.headers.values_at("content-encoding", "etag", "vary")
      end
    end
    assert_equal [200, TEXT], ranged.get("gzip", range: "bytes=10-19", if_range: '"abd"').then { |answer| [answer.status, answer.text] }
  end

  test "the part that is not sent is closed, and the application sees the same request again, without the two fields" do
    seen, bodies = [], []
    application = CompressingApplication.new(lint: false) do |env|
      seen << env.dup
      env["seen"] = true
      bodies << CompressingApplication::Body.new(TEXT)
      [env.key?("HTTP_RANGE") ? 206 : 200, JSON.dup, bodies.last]
    end
    assert_equal TEXT, application.get("gzip", range: "bytes=0-", if_range: DATE, cookie: "a=b").text
    assert_equal [2, [0, 1], [1, 1]], [seen.size, bodies.map(&:asked), bodies.map(&:closed)]
    assert_equal seen.first.except("HTTP_RANGE", "HTTP_IF_RANGE"), seen.last
  end

  test "of what is never compressed a part is sent by a date, too, and the application is asked once" do
    [{"content-type" => "video/mp4"}, {"cache-control" => "no-transform"}, {"content-encoding" => "br"}, {"rack.hijack" => proc {}}].each do |fields|
      asked = 0
      application = CompressingApplication.new(lint: false) do
        asked += 1
        [206, JSON.merge("content-range" => "bytes 0-3/9").merge(fields), ["four"]]
      end
      assert_equal [206, "four", 1], application.get("gzip", range: "bytes=0-3", if_range: DATE).then { |answer| [answer.status, answer.bytes, asked] }, fields
    end
    off = CompressingApplication.new(lint: false) { |env| [206, JSON.dup, ["four"]].tap { env["hikyaku.compression"] = false } }
    assert_equal 206, off.get("gzip", range: "bytes=0-3", if_range: DATE).status
  end

  test "several parts in one are not trusted to a date" do
    application = CompressingApplication.new(lint: false) do |env|
      env.key?("HTTP_RANGE") ? [206, {"content-type" => "multipart/byteranges; boundary=x"}, ["--x"]] : [200, JSON.dup, [TEXT]]
    end
    assert_equal [200, TEXT], application.get("gzip", range: "bytes=0-3,5-6", if_range: DATE).then { |answer| [answer.status, answer.text] }
    assert_equal 206, application.get("gzip", range: "bytes=0-3,5-6", if_range: '"abc"').status
  end

  # RFC 9110, section 12.5.5: a cache that has the parts of one coding must not give them to who asked for another.
  test "several parts in one say what they depend on, as one part does" do
    fields = {"content-type" => "multipart/byteranges; boundary=x", "vary" => "Accept"}
    part = CompressingApplication.new(lint: false) { [206, fields.dup, ["--x" * 400]] }.get("gzip", range: "bytes=0-3,5-6")
    assert_equal [206, nil, "Accept, Accept-Encoding"], [part.status, *part.headers.values_at("content-encoding", "vary")]
    whole = CompressingApplication.new(lint: false) { [200, fields.dup, ["--x" * 400]] }.get("gzip")
    assert_equal [200, nil, "Accept"], [whole.status, *whole.headers.values_at("content-encoding", "vary")]
    Dir.mktmpdir("hikyaku-ranges") do |folder|
      File.write(File.join(folder, "a.json"), TEXT)
      answer = CompressingApplication.new(inside: []) { |env| Rack::Files.new(folder).call(env) }.get(path: "/a.json", range: "bytes=0-3,10-19")
      assert_equal [206, "Accept-Encoding"], [answer.status, answer["vary"]]
    end
  end

  test "Rack::Files, which does not look at If-Range, is safe behind it" do
    Dir.mktmpdir("hikyaku-ranges") do |folder|
      File.write(File.join(folder, "a.json"), TEXT)
      application = CompressingApplication.new(inside: []) { |env| Rack::Files.new(folder).call(env) }
      date = application.get(path: "/a.json")["last-modified"]
      answer = application.get(path: "/a.json", range: "bytes=10-19", if_range: date)
      assert_equal [200, "gzip", TEXT], [answer.status, answer["content-encoding"], answer.text]
      assert_equal [206, TEXT[10..19]], application.get(path: "/a.json", range: "bytes=10-19").then { |got| [got.status, got.bytes] }
      assert_equal 416, application.get(path: "/a.json", range: "bytes=99999-").status
    end
  end

  test "with other methods Range means nothing, and HEAD says what GET would without it" do
    known = {**JSON, "etag" => '"abc"', "content-length" => TEXT.bytesize.to_s}
    application = CompressingApplication.new(lint: false) { |env| [200, known.dup, (env["REQUEST_METHOD"] == "HEAD") ? [] : [TEXT]] }
    %w[gzip br zstd].each do |name|
      [{range: "bytes=0-3"}, {range: "bytes=0-3", if_range: DATE}, {}].each do |fields|
        answer = application.get(name, method: "HEAD", **fields)
        assert_equal [200, name, "\"abc-#{name}\"", ""], [answer.status, answer["content-encoding"], answer["etag"], answer.bytes]
        assert_equal [name, TEXT], application.get(name, method: "POST", **fields).then { |got| [got["content-encoding"], got.text] }
      end
    end
  end

  private

  # Does as section 13.1.5 says, of what it knows.
  def ranged
    CompressingApplication.new(lint: false) do |env|
      condition = env["HTTP_IF_RANGE"]
      met = condition.nil? || condition.strip == '"abc"' || condition == DATE
      (env.key?("HTTP_RANGE") && met) ? part : [200, JSON.merge("etag" => '"abc"'), [TEXT]]
    end
  end

  def careless = CompressingApplication.new(lint: false) { |env| env.key?("HTTP_RANGE") ? part : [200, JSON.merge("etag" => '"abc"'), [TEXT]] }

  def part = [206, JSON.merge("etag" => '"abc"', "content-range" => "bytes 10-19/#{TEXT.bytesize}", "content-length" => "10"), [TEXT[10..19]]]
end
