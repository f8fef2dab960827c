# frozen_string_literal: true

require "test_helper"
require "msgpack"
require "hikyaku/http/failure"
require "hikyaku/http/response"

# What a response says of itself.
class HTTPResponseTest < Minitest::Test
  HTTP = Hikyaku::HTTP
  URL = "https://example.com/a?b=c"
  private_constant :HTTP, :URL

  test "a text is in the charset that is said, and can be worked with" do
    {
      "latin1" => ["\u00E9", "ISO-8859-1"], "'iso-8859-1'" => ["\u00E9", "ISO-8859-1"], "\"Windows-1252\"" => ["\u20AC", "Windows-1252"], "x-sjis" => ["\u98DB", "Windows-31J"], "UTF8" => ["\u98DB", "UTF-8"],
      "utf-16le" => ["\u98DB", "UTF-16LE"], "nothing-known" => ["\u98DB", "UTF-8"]
    }.each do |charset, (text, encoding)|
      came = response("text/plain; charset=#{charset}", text.encode(encoding).b).text
      assert_equal [text, Encoding.find(encoding)], [came.encode("UTF-8"), came.encoding], charset
    end
    {"utf-16" => "\uFEFF\u98DBx".encode("UTF-16LE"), "UTF-16" => "\uFEFF\u98DBx".encode("UTF-16BE"), "iso-2022-jp" => "\u98DBx".encode("ISO-2022-JP")}.each do |charset, body|
      assert_match(/\A\u98DBx\z/, response("text/plain; charset=#{charset}", body.b).text, charset)
    end
    {"utf-16" => "x", "utf-7" => "+AGE-", "iso-2022-jp" => "\xFF", "utf-8" => "\xFF"}.each { |charset, body| assert_equal [body.b, Encoding::BINARY], response("text/plain; charset=#{charset}", body.b).text.then { |text| [text, text.encoding] } }
  end

  test "JSON is read whatever its type says, as browsers do" do
    ["application/json", "application/problem+json; charset=utf-8", "text/javascript", "text/plain", "application/octet-stream", nil].each do |type|
      assert_equal({"a" => [1, "\u00E9"]}, response(type, %({"a":[1,"\u00E9"]})).json)
    end
    assert_equal [1], response("application/json", "\xEF\xBB\xBF[1]").json
    assert_nil response("application/json", "null").json
  end

  test "what is no JSON is an error that says where it came from and what it is, and nothing of it" do
    {
      ["text/html", "<p>secret"] => /#{Regexp.escape(URL)} \(200, "text\/html"\) cannot be read as JSON: the text is none from line 1/o, [nil, ""] => /\(200, no Content-Type\) cannot be read as JSON: it is empty/,
      ["application/json", %({"secret":1,"secret":2})] => /a key twice/, ["application/json", "[\"secret\xFF\"]"] => /not UTF-8/, ["application/json", "#{"[" * 102}#{"]" * 102}"] => /deeper than 100/,
      ["application/vnd.msgpack", {"secret" => 1}.to_msgpack] => /says that it is MessagePack, which Response#object reads/
    }.each do |(type, body), message|
      error = assert_raises(HTTP::BadResponse, body.inspect) { response(type, body).json }
      assert_match message, error.message
      assert_equal URL, error.url
      refute_includes error.message, "secret"
    end
  end

  test "an object is read as its type says, JSON or MessagePack" do
    bytes = {"a" => 1, "at" => Time.at(5).utc}
    %w[application/vnd.msgpack application/msgpack application/x-msgpack application/x-mpac application/x.y+msgpack].each do |type|
      assert_equal bytes, response("#{type};q=1", Hikyaku::Codec[:msgpack].dump(bytes)).object
    end
    ["application/json", "Application/JSON ; charset=utf-8", "application/geo+json", "text/json"].each { |type| assert_equal [1], response(type, "[1]").object }
    ["text/html", "application/jsonp", nil].each do |type|
      assert_match(/neither JSON nor MessagePack/, assert_raises(HTTP::BadResponse) { response(type, "[1]").object }.message)
    end
    assert_match(/cannot be read as MessagePack/, assert_raises(HTTP::BadResponse) { response("application/msgpack", "\xC1").object }.message)
  end

  test "limits of reading may be others" do
    assert_raises(HTTP::BadResponse) { response("application/json", "[[1]]").json(max_depth: 1) }
    assert_raises(HTTP::BadResponse) { response("application/json", "[1,2]").object(max_items: 1) }
    large = "[#{"0," * 200_000}\"#{"x" * 10_000_000}\"]"
    assert_equal 200_001, response("application/json", large).json.size
  end

  test "a status of 400 or above is raised where that is asked for, with the response" do
    [200, 204, 301, 304, 399].each { |status| response(nil, "", status: status).then { |one| assert_same one, one.raise_for_status } }
    [400, 404, 499, 500, 599, 999].each do |status|
      one = response("application/json", "[\"why\"]", status: status)
      error = assert_raises(HTTP::BadStatus) { one.raise_for_status }
      assert_same one, error.response
      assert_equal [status, URL, "the answer to #{URL} has the status #{status}"], [error.status, error.url, error.message]
      assert_kind_of HTTP::RequestFailed, error
      assert_equal ["why"], error.response.json
    end
  end

  test "a failure raises what went wrong, whatever it is asked for" do
    error = HTTP::ConnectFailed.new("no", url: URL)
    failure = HTTP::Failure.new(error, URL)
    %i[value body headers text json object raise_for_status].each { |name| assert_same error, assert_raises(HTTP::ConnectFailed) { failure.public_send(name) } }
    assert_same error, assert_raises(HTTP::ConnectFailed) { failure.json(max_depth: 1) }
  end

  private

  def response(type, body, status: 200) = HTTP::Response.new(status: status, headers: type ? [["content-type", type]] : [], body: body.b.freeze, url: URL)
end
