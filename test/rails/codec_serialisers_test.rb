# frozen_string_literal: true

require "test_helper"
require "cgi"
require "support/codec_application"
require "support/rails_application"

# Both representations say the same, whoever stands before `render json:`, and however an object says what it is.
class CodecSerialisersTest < Minitest::Test
  PACKED = "application/vnd.msgpack"
  JSON_TYPE = "application/json"
  # See test/support/codec_application/serialisers.rb.
  WAYS = %w[renderer typed renderers body normal between replaced encoder].freeze

  class << self
    def application = CodecApplication.shared(codec: true, codec_params: {max_bytes: 10_000, max_depth: 20, max_items: 1_000})
  end

  test "what a serialiser leaves out of JSON is not in MessagePack" do
    WAYS.each do |way|
      both("/#{way}/chosen") { |answer| assert_equal [201, "/items", [{"name" => "Hōryū"}, {"name" => "Dune"}]], [answer.status, answer["location"], answer.value], way }
      both("/#{way}/explicit") { |answer| assert_equal({"name" => "Hōryū"}, answer.value, way) }
      assert_equal [201, 1], [get("/#{way}/explicit", PACKED).status, get("/#{way}/bytes").value]
    end
  end

  test "nor is it in what is streamed, in either format" do
    (WAYS - %w[replaced encoder]).each do |way|
      both("/#{way}/rows") { |answer| assert_equal [{"name" => "Hōryū"}, {"name" => "Dune"}], answer.value, way }
      both("/#{way}/strings") { |answer| assert_equal ["plain text", '{"a":1}'], answer.value, way }
    end
  end

  OBJECTS = ["asks", "asks in arrays", "asks in hashes", "optional", "both", "list", "structure", "set", "text", "texts", "later text", "delegated", "single", "symbol", "type"].freeze

  test "an object is asked for as_json or to_json as render json: asks it" do
    json, packed = [JSON_TYPE, PACKED].map { |accept| OBJECTS.to_h { |name| [name, value(get("/object?name=#{CGI.escape(name)}", accept))] } }
    OBJECTS.each { |name| json[name].nil? ? assert_nil(packed[name]) : assert_equal(json[name], texts(packed[name]), name) }
    assert_equal ["Hash", true], json["asks"].values_at("class", "keys").then { |name, keys| [name, keys.include?("prefixes")] }
    assert_equal [{"given" => "Hash"}, {"a" => {"given" => "Hash"}}], packed["optional"]
    assert_equal [{"inner" => [{"given" => "NilClass"}], "kept" => true}], packed["both"]
    assert_equal [{"text" => "its own"}, {"a" => [{"secret" => 1}]}, {"text" => "later"}, {"text" => "its own"}, [1]],
      packed.values_at("text", "texts", "later text", "delegated", "single")
  end

  test "rows that are streamed are asked in that way, too" do
    both("/asking_rows?options=none") { |answer| assert_equal [["Hash", ["prefixes", "template"]]] * 2, asked(answer) }
    both("/asking_rows?options=only") { |answer| assert_equal [["Hash", ["only", "prefixes", "template"]]] * 2, asked(answer) }
  end

  test "moments are moments whichever part of a hash is sent" do
    %w[none only except].each do |options|
      json, packed = [JSON_TYPE, PACKED].map { |accept| value(get("/moments?options=#{options}", accept)) }
      assert_equal "2026-01-02T03:04:05.678Z", json[0]["at"]
      assert_equal [-1, -1, -1], [packed[0]["at"], packed[0]["zone"], packed[0]["in"]["at"]].map(&:type)
      assert_equal [json[0].keys, json[0]["in"].keys, options == "none"], [packed[0].keys, packed[0]["in"].keys, packed[0].key?("no")]
    end
  end

  test "what contains itself is refused, whichever part of it is to be sent" do
    assert_equal 500, get("/endless").status
    assert_match(/Unrepresentable \(this cannot be represented: it is nested deeper than 100 levels, or contains itself/, self.class.application.log)
  end

  test "who names another type in render json: gets JSON under it" do
    [JSON_TYPE, PACKED].each do |accept|
      answer = get("/other_type?type=application/vnd.api%2Bjson", accept)
      assert_equal ["application/vnd.api+json", %({"a":1}), "Accept"], [answer["content-type"][/[^;]+/], answer.body, answer["vary"]]
    end
    assert_equal ["application/x-mpac", {"a" => 1}], get("/other_type?type=application/x-mpac", PACKED).then { |answer| [answer["content-type"], MessagePack.unpack(answer.body)] }
  end

  # Of an action that offers JSON, MessagePack and a page.
  FIELDS = {
    "application/vnd.msgpack;q=0" => 406, "application/vnd.msgpack;q=0, */*" => JSON_TYPE, "application/vnd.msgpack;q=0, text/html" => "text/html",
    "application/json;q=0, text/html;q=0, application/x-mpac;q=0" => 406, "*/*;q=0.1, application/json;q=0, application/vnd.msgpack;q=0" => "text/html",
    "application/vnd.msgpack;q=0.1, text/html" => "text/html", "application/vnd.msgpack;q=0.5, application/json;q=0.4, text/html;q=0" => PACKED, "application/*;q=0" => [JSON_TYPE, "text/html", 406],
    "application/json;q=0, application/*;q=0" => [JSON_TYPE, "text/html", 406], "text/html, application/xml;q=0.9, */*;q=0.8" => "text/html"
  }.freeze

  test "where MessagePack is named the weights count for pages, too, and with a weight of 0 it is never sent" do
    FIELDS.each do |accept, expected|
      answer = get("/object?name=record", accept)
      assert_includes Array(expected), (answer.status == 406) ? 406 : answer["content-type"][/[^;]+/], accept
      assert_equal "Accept", answer["vary"], accept unless accept.include?("xml")
    end
    assert_equal [406, "text/html; charset=utf-8"], [get("/packed_or_page", "*/*;q=0").status, get("/packed_or_page", "*/*;q=0, text/html")["content-type"]]
    %w[/template /implicit /own].product(["application/vnd.msgpack;q=0, application/json;q=0.5", "application/vnd.msgpack;q=0"]) do |path, accept|
      refute_equal PACKED, get(path, accept)["content-type"]
    end
  end

  GARBAGE = ["garbage", "*", "a" * 10_000, "g," * 9_000, "\xFF\x00".b, "*, garbage;q=1"].freeze

  test "a field Accept in which nothing is a type is as none, and what is no type is passed over" do
    GARBAGE.each do |accept|
      %w[/either /template /object?name=record].each { |path| assert_equal [200, "#{JSON_TYPE}; charset=utf-8"], get(path, accept).then { |answer| [answer.status, answer["content-type"]] }, accept[0, 20] }
      assert_equal "<p>page</p>\n", get("/page", accept).body
    end
    assert_equal PACKED, get("/object?name=record", "garbage, application/x-mpac")["content-type"]
    assert_equal "page", get("/object?name=record", "garbage, text/html").body
    answer = get("/either", "garbage, text/html")
    assert_equal [406, [JSON_TYPE, PACKED], "Accept"], [answer.status, answer.value["offered"], answer["vary"]]
  end

  test "what Rails says of errors is text in MessagePack, without a charset, and depends on what is accepted" do
    {"/boom" => [500, "Internal Server Error"], "/nosuch" => [404, "Not Found"]}.each do |path, (status, words)|
      packed, json = get(path, PACKED), get(path, JSON_TYPE)
      assert_equal [status, PACKED, "Accept", packed.body.bytesize.to_s], [packed.status, *packed.headers.values_at("content-type", "vary", "content-length")]
      assert_equal({"status" => status, "error" => words}, packed.value)
      assert_equal [Encoding::UTF_8, packed.value], [packed.value["error"].encoding, json.value]
      assert_equal "Accept", json["vary"]
      assert_equal [PACKED, ""], get(path, PACKED, method: "HEAD").then { |head| [head["content-type"], head.body] } if heads?
    end
    assert_equal [500, PACKED, nil], get("/boom.msgpack").then { |answer| [answer.status, answer["content-type"], answer["vary"]] }
  end

  test "so is what an API in development says of them" do
    said = get("/debugged?method=GET&type=#{PACKED}").value
    value = MessagePack.unpack(said["body"].unpack1("m"))
    assert_equal [500, PACKED, "Accept", 500, "Internal Server Error", "#<RuntimeError: a reason>"], [said["status"], *said["headers"].values_at("content-type", "vary"), *value.values_at("status", "error", "exception")]
    assert_equal [PACKED, ""], get("/debugged?method=HEAD&type=#{PACKED}").value.then { |head| [head["headers"]["content-type"], head["body"]] } if heads?
    json = get("/debugged?method=GET&type=#{JSON_TYPE}").value
    assert_equal ["application/json; charset=UTF-8", "Accept", value.keys], [*json["headers"].values_at("content-type", "vary"), JSON.parse(json["body"].unpack1("m")).keys]
  end

  test "a body that cannot be read is not in the log, and is no trouble to it" do
    log = get("/logged?type=#{PACKED}", method: "POST", body: "\x81\xA5token\xA6tiger\xFF".b, type: "text/plain").body
    assert_match(/ 14 bytes that should be MessagePack\nrefused/, log)
    refute_includes log, "tiger"
    assert_match(/tiger.*refused/m, get("/logged?type=#{JSON_TYPE}", method: "POST", body: "tiger", type: "text/plain").body)
  end

  private

  def get(...) = self.class.application.get(...)

  # Before 7.2, Rails sends a body to a HEAD, when there was an error.
  def heads? = Gem.loaded_specs["railties"].version >= Gem::Version.new("7.2")

  def both(path)
    [JSON_TYPE, PACKED].each do |accept|
      answer = get(path, accept)
      assert_equal accept, answer["content-type"][/[^;]+/], path
      yield answer
    end
  end

  def asked(answer)
    value(answer).map { |row| (row["in"] || row).values_at("class", "keys").then { |name, keys| [name, (keys - ["layout"]).sort] } }
  end

  def value(answer) = (answer["content-type"] == PACKED) ? MessagePack.unpack(answer.body, allow_unknown_ext: true) : answer.value

  # Moments as JSON has them.
  def texts(value)
    case value
    when Hash then value.transform_values { |each| texts(each) }
    when Array then value.map { |each| texts(each) }
    when MessagePack::ExtensionValue then "2026-01-01T00:00:00.000Z"
    else value
    end
  end
end
