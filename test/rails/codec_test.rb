# frozen_string_literal: true

require "test_helper"
require "cgi"
require "zlib"
require "support/codec_application"
require "support/rails_application"

# JSON and MessagePack from the controllers of a Rails application, as the client asks.
class CodecTest < Minitest::Test
  PACKED = "application/vnd.msgpack"

  class << self
    def application = CodecApplication.shared(codec: true, codec_params: {max_bytes: 10_000, max_depth: 20, max_items: 1_000})
  end

  OBJECTS = ["records", "record", "alba", "alba text", "blueprint", "blueprint text", "nothing"].freeze

  test "both representations say the same of records, relations and what serialisers make" do
    OBJECTS.each do |name|
      path = "/object?name=#{CGI.escape(name)}"
      json, packed = get(path, "application/json"), get(path, PACKED)
      assert_equal ["application/json; charset=utf-8", PACKED], [json["content-type"], packed["content-type"]], name
      (name == "nothing") ? assert_nil(packed.value) : assert_equal(json.value, packed.value, name)
    end
    assert_equal({"items" => [{"id" => 1, "name" => "Hōryū"}, {"id" => 2, "name" => "Dune"}]}, get("/object?name=alba", PACKED).value)
    assert_equal({"id" => 1, "name" => "Hōryū"}, get("/object?name=blueprint+text", PACKED).value)
    assert_equal 1, get("/object?name=packed", PACKED).value
  end

  STRINGS = {"plain" => "plain text", "json" => '{"a":1}', "quote" => %(<"a" & b>\n), "empty" => "", "safe" => "Hōryū"}.freeze

  test "hikyaku_represent sends a String as text in both representations, alone and as a row" do
    STRINGS.each do |name, text|
      ["application/json", PACKED].each do |accept|
        answer = get("/string?name=#{name}", accept)
        assert_equal [202, text, "Accept"], [answer.status, answer.value, answer["vary"]], "#{name} as #{accept}"
        assert_equal accept, answer["content-type"][/[^;]+/]
        assert_equal [text], get("/string?row=1&name=#{name}", accept).value, name
      end
    end
    assert_equal "\xFF\x00".b, get("/string?name=bytes", PACKED).value
    assert_equal 500, get("/string?name=bytes", "application/json").status
  end

  # As of bytes and broken text anywhere else in the codec.
  test "hikyaku_represent says of bytes that JSON cannot have them, and of broken text that it is none" do
    {"bytes" => /it is bytes \(ASCII-8BIT\)/, "words as bytes" => /it is bytes \(ASCII-8BIT\)/, "broken" => /said to be UTF-8, and is not/}.each do |name, sentence|
      answer = get("/refused_string?name=#{CGI.escape(name)}", "application/json")
      assert_equal 422, answer.status, name
      assert_match sentence, answer.body
    end
    assert_equal "ü".b, get("/refused_string?name=words+as+bytes", PACKED).value
    assert_equal 422, get("/refused_string?name=broken", PACKED).status
    assert_equal [200, "a"], get("/refused_string?name=ascii+bytes", "application/json").then { |answer| [answer.status, answer.value] }
    assert_equal %("\\u003c\\"a\\" \\u0026 b\\u003e\\n"), get("/string?name=quote", "application/json").body
  end

  test "what JSON writes as text is text, and moments are moments" do
    json, packed = get("/object?name=hash", "application/json").value, get("/object?name=hash", PACKED).body
    value = MessagePack::Factory.new.tap { |factory| factory.register_type(-1, Time, packer: MessagePack::Time::Packer, unpacker: MessagePack::Time::Unpacker) }.load(packed)
    assert_equal Time.utc(2026, 1, 2, 3, 4, 5, 678_000), value["at"]
    assert_equal Time.utc(2026), value["zone"]
    assert_equal json.except("at", "zone"), value.except("at", "zone")
  end

  # What Active Support sends, or refuses, and the codec would not.
  LEFT = /\A(?:NaN|infinity|decimal NaN|bytes|broken|too deep|bytes as key|delegated|key twice|keys that are one|identity twice|gives (?:a key|identity) twice|written text in|gives written text|written by itself alone in)\b/
  # What Active Support refuses as well; an as_json that must be given options is given none where there are none.
  REFUSED = /\A(?:bytes|broken|too deep|key twice|gives a key twice|asks)\b/

  test "render json: writes the bytes that Active Support's encoder writes, without it" do
    report = get("/compared").value
    assert_empty report["differing"]
    assert_empty report["left"].grep_v(LEFT)
    assert_empty report["failed"].grep_v(REFUSED)
  end

  test "render msgpack: takes the options of render json:" do
    json, packed = get("/chosen", "application/json"), get("/chosen", PACKED)
    assert_equal [201, "/items/1", {"name" => "Hōryū", "label" => "Hōryū!"}], [json.status, json["location"], json.value]
    assert_equal [201, "/items/1", json.value], [packed.status, packed["location"], packed.value]
    typed = get("/typed")
    assert_equal ["application/x-mpac", {"a" => 1}], [typed["content-type"], MessagePack.unpack(typed.body)]
  end

  test "in an action that offers both, render json: answers with what was chosen" do
    assert_equal [{"name" => "Hōryū"}, {"name" => "Dune"}], get("/either", "application/json").value
    ["application/vnd.msgpack", "application/msgpack", "application/x-msgpack", "application/x-mpac"].each do |accept|
      answer = get("/either", accept)
      assert_equal [PACKED, [{"name" => "Hōryū"}, {"name" => "Dune"}]], [answer["content-type"], answer.value]
    end
    assert_equal [{"name" => "Hōryū", "price" => "12.5"}, {"name" => "Dune", "price" => "3.1"}], get("/represented", PACKED).value
    assert_equal({"text" => %({"a":1}), "template" => %({"own":"JSON"})}, get("/to_string", PACKED).value)
  end

  test "the address may say which, by either name, and the response then depends on nothing else" do
    {"/either.msgpack" => PACKED, "/either.mpac" => PACKED, "/either.json" => "application/json; charset=utf-8", "/either?format=msgpack" => PACKED}.each do |path, type|
      ["application/json", PACKED, nil].each do |accept|
        answer = get(path, accept)
        assert_equal [200, type, nil, 2], [answer.status, answer["content-type"], answer["vary"], answer.value.size], path
      end
    end
  end

  ASKED = {
    nil => :json, "" => :json, "*/*" => :json, "application/json, text/plain, */*" => :json, "application/vnd.msgpack, application/json;q=0.9, */*;q=0.1" => :msgpack,
    "application/vnd.msgpack;q=0.5, application/json" => :json, "application/json;q=0, */*" => :msgpack, "application/*;q=0.2, text/html" => :json
  }.freeze

  test "weights count, and no client is taken for a browser where no page is offered" do
    ASKED.each do |accept, format|
      answer = get("/either", accept)
      assert_equal [200, format, "Accept"], [answer.status, (answer["content-type"] == PACKED) ? :msgpack : :json, answer["vary"]], accept.inspect
    end
    assert_equal PACKED, get("/packed_first")["content-type"]
    assert_equal "page", get("/object?name=record", "text/html,application/xml;q=0.9,*/*;q=0.8").body
    assert_equal PACKED, get("/object?name=record", "application/vnd.msgpack, */*;q=0.1")["content-type"]
  end

  test "templates that are written for JSON are rendered, and packed" do
    items = {"items" => [{"name" => "Hōryū", "price" => "12.5"}, {"name" => "Dune", "price" => "3.1"}], "count" => 2}
    expected = {"/template" => items, "/framed" => {"data" => items}, "/implicit" => [{"name" => "Hōryū"}, {"name" => "Dune"}], "/text" => {"text" => "Hōryū"}}
    expected.each do |path, value|
      {"application/json" => "application/json; charset=utf-8", PACKED => PACKED}.each do |accept, type|
        answer = get(path, accept)
        assert_equal [200, type, value, "Accept"], [answer.status, answer["content-type"], answer.value, answer["vary"]], path
      end
      assert_equal [PACKED, value], get("#{path}.mpac").then { |answer| [answer["content-type"], answer.value] }
    end
    assert_equal [{"own" => "MessagePack"}, {"own" => "JSON"}], [get("/own", PACKED).value, get("/own", "application/json").value]
  end

  test "each representation has a strong entity tag, and is unmodified when it comes back" do
    paths = %w[/either /template /represented /either.json /either.msgpack]
    paths.each do |path|
      tags = ["application/json", PACKED].map { |accept| get(path, accept)["etag"] }
      assert_match(/\A"\h{32}"\z/, tags.first)
      assert_equal path.include?(".") ? 1 : 2, tags.uniq.size
      ["application/json", PACKED].zip(tags, tags.reverse) do |accept, tag, other|
        [tag, "W/#{tag}", "\"x\", #{tag}", "*"].each { |field| assert_unmodified get(path, accept, if_none_match: field), tag }
        assert_equal 200, get(path, accept, if_none_match: other).status unless tag == other
      end
    end
    # Rack::ETag has made a weak one.
    assert_equal [200, false], get("/private_one", PACKED, if_none_match: "*").then { |answer| [answer.status, answer["etag"].start_with?('"')] }
    refute get("/echo", method: "POST")["etag"].start_with?('"')
  end

  test "fresh_when makes a tag for each representation" do
    tags = ["application/json", PACKED].map { |accept| get("/fresh", accept)["etag"] }
    dates = get("/fresh")["last-modified"]
    assert_equal 2, tags.uniq.size
    ["application/json", PACKED].zip(tags, tags.reverse) do |accept, tag, other|
      answer = get("/fresh", accept, if_none_match: tag, if_modified_since: dates)
      assert_equal [304, "", tag, "Accept"], [answer.status, answer.body, answer["etag"], answer["vary"]]
      assert_equal 200, get("/fresh", accept, if_none_match: other, if_modified_since: dates).status
    end
  end

  test "what the application says of a version, or of a date, stays as it is" do
    ["application/json", PACKED].each do |accept|
      one, other = %w[1 2].map { |n| get("/versioned?n=#{n}", accept)["etag"] }
      assert_equal one, other
      assert_equal 304, get("/versioned?n=3", accept, if_none_match: one).status
      dated = get("/dated", accept)
      assert_equal [200, nil, {"a" => 1}], [dated.status, dated["etag"], dated.value]
      assert_equal 304, get("/dated", accept, if_modified_since: dated["last-modified"]).status
    end
    refute_equal get("/versioned", "application/json")["etag"], get("/versioned", PACKED)["etag"]
  end

  test "an action that offers JSON alone gives it to whoever takes it, and there is one type of the name" do
    answer = get("/only_json", "application/vnd.msgpack, application/json;q=0.5")
    assert_equal [200, "application/json; charset=utf-8", 2], [answer.status, answer["content-type"], answer.value["count"]]
    assert_equal 406, get("/only_json", PACKED).status
    assert_equal 1, get("/types").value
  end

  test "a HEAD has the fields of a GET, and no body" do
    ["application/json", PACKED].each do |accept|
      answer, head = %w[GET HEAD].map { |method| get("/either", accept, method: method) }
      fields = %w[content-type etag vary]
      assert_equal [200, answer.headers.slice(*fields), ""], [head.status, head.headers.slice(*fields), head.body]
    end
  end

  test "what is not offered is refused with a sentence that names what is" do
    {"/either" => "text/html", "/either.xml" => nil, "/template" => "application/json;q=0", "/implicit" => "text/csv", "/represented" => "application/cbor"}.each do |path, accept|
      answer = get(path, accept)
      assert_equal [406, "application/problem+json", "no-store"], [answer.status, *answer.headers.values_at("content-type", "cache-control")], path
      assert_match(/application\/json/, answer.value["detail"])
      refute_match(/\.rb|#/, answer.body)
      assert_equal "Accept", answer["vary"] unless path.include?(".")
    end
    %w[/either /implicit].each { |path| assert_equal ["application/json", PACKED], get(path, "text/html").value["offered"] }
  end

  test "the application's own refusal counts more, and pages stay with Rails" do
    assert_equal [406, "no taste"], get("/taste", "text/html").then { |answer| [answer.status, answer.body] }
    answer = get("/page", "application/xml")
    assert_equal 406, answer.status
    refute_equal "application/problem+json", answer["content-type"]
    assert_equal ["<p>page</p>\n", "text/html; charset=utf-8"], get("/page", "text/html").then { |page| [page.body, page["content-type"]] }
  end

  HOSTILE = ["x" * 50_000, "application/json," * 5_000, ";;;,,,=\"", "garbage", "application/json;q=#{"9" * 5_000}", "*/*;q=NaN", "application/vnd.msgpack, \"", "msgpack"].freeze

  test "fields that lie get an answer of a type that it has, or a 406" do
    HOSTILE.each do |accept|
      %w[/either /template /implicit].each do |path|
        answer = get(path, accept)
        assert_includes [200, 406], answer.status, accept[0, 20]
        assert_kind_of Enumerable, answer.value if answer.status == 200
      end
    end
  end

  test "text that is no JSON is not packed" do
    assert_equal 500, get("/words").status
    assert_equal({"status" => 500, "error" => "Internal Server Error"}, get("/words", PACKED).value)
    assert_match(/render msgpack: was given a String that is no JSON/, self.class.application.log)
  end

  test "types that an application makes up are left alone" do
    assert_equal [200, "no such type", "x"], get("/made_up").then { |answer| [answer.status, answer["content-type"], answer.body] }
  end

  test "what is rendered outside of a request is as it was" do
    json, template, page = get("/offline").value
    assert_equal [{"a" => 1}, 2, "page"], [JSON.parse(json), JSON.parse(template)["count"], page]
  end

  test "an API controller has it too" do
    assert_equal [{"api" => true}, {"api" => true}], [get("/api", PACKED).value, get("/api.json").value]
    assert_equal 406, get("/api", "text/html").status
  end

  test "rows are streamed in either format, from an Enumerator, from the database and from ActionController::Live" do
    ["application/json", PACKED].each do |accept|
      answer = get("/rows?count=3", accept)
      assert_equal [200, [0, 1, 2], nil], [answer.status, answer.value.map { |row| row["id"] }, answer["etag"]]
      assert_equal %w[id text], answer.value.first.keys
      assert_equal [{"name" => "Hōryū"}, {"name" => "Dune"}], get("/found", accept).value
      live = get("/live", accept)
      assert_equal [200, [1, 2, 3], "Accept"], [live.status, live.value, live["vary"]]
      assert_includes [PACKED, "application/json; charset=utf-8"], live["content-type"]
      assert_equal "", get("/rows?count=3", accept, method: "HEAD").body
    end
  end

  test "two hundred thousand rows take no more memory than a few" do
    skip "needs /proc" unless File.exist?("/proc/self/clear_refs")
    ["application/json", PACKED].each do |accept|
      get("/rows?count=20000", accept, count: true)
      answer = get("/rows?count=200000", accept, count: true)
      assert_operator answer.body.to_i, :>, 38_000_000
      assert_operator answer.peak, :<, 12_000_000, accept
    end
  end

  test "a body in MessagePack becomes params, as one in JSON does" do
    [{"name" => "Dune", "tags" => ["a", nil], "deep" => {"n" => 1.5}}, [1, {"a" => "ō"}], "text", 7].each do |value|
      answers = {"application/json" => JSON.generate(value), PACKED => MessagePack.pack(value), "application/x-mpac" => MessagePack.pack(value)}.map do |type, body|
        get("/echo", method: "POST", body: body, type: type).value
      end
      assert_equal 1, answers.uniq.size, answers.inspect
      assert_equal value["deep"], answers.first["params"]["deep"] if value.is_a?(Hash)
    end
  end

  BOMBS = {
    "no MessagePack" => "\xC1", "nothing behind a map" => "\xDF\xFF\xFF\xFF\xFF", "a length" => "\xDB\xFF\xFF\xFF\xFFx", "an array" => "\xDD\xFF\xFF\xFF\xFF", "depth" => "\x91" * 5_000,
    "an extension" => "\xD4\x05x", "a long extension" => "\xC9\xFF\xFF\xFF\xFF\x05", "more than one value" => "\x01\x02", "too many" => "\xDC\x07\xD0" + "\x01" * 2_000,
    "too long" => "\xDA\x2E\xE0" + "x" * 12_000, "text that is none" => "\x81\xA1a\xA2\xFF\xFE", "a number" => "\x81\xA1a\xCB\x7F\xF8\x00\x00\x00\x00\x00\x00", "a key" => "\x81\x01\x02",
    "a key twice" => "\x82\xA1a\x01\xA1a\x02", "cut off" => "\x81\xA1a"
  }.freeze

  test "what is no honest body is refused with 400 and a sentence" do
    BOMBS.each do |name, bytes|
      answer = get("/echo", method: "POST", body: bytes.b, type: PACKED)
      assert_equal [400, "application/problem+json"], [answer.status, answer["content-type"]], name
      assert_match(/\A[A-Za-z].{20,200}\z/, answer.value["detail"], name)
      refute_match(/\.rb/, answer.body)
    end
    refute_equal "application/problem+json", get("/echo", method: "POST", body: "{", type: "application/json")["content-type"]
  end

  test "behind compression each coding of each representation has a tag, and is unmodified when it comes back" do
    application = CodecApplication.new(compressed: true, codec: true)
    answers = ["application/json", PACKED].product(["gzip", "identity"]).to_h do |accept, coding|
      [[accept, coding], application.get("/either", accept, accept_encoding: coding)]
    end
    assert_equal [4, ["Accept, Accept-Encoding"]], [answers.values.map { |answer| answer["etag"] }.uniq.size, answers.values.map { |answer| answer["vary"] }.uniq]
    answers.each do |(accept, coding), answer|
      assert_equal [("gzip" if coding == "gzip")], [answer["content-encoding"]]
      # Who has it as it is may go on with that.
      answers.each do |(type, other), kept|
        status = application.get("/either", accept, accept_encoding: coding, if_none_match: kept["etag"]).status
        assert_equal (type == accept && [coding, "identity"].include?(other)) ? 304 : 200, status
      end
    end
    rows = application.get("/rows?count=500", PACKED, accept_encoding: "gzip")
    assert_equal 500, MessagePack.unpack(Zlib.gunzip(rows.body)).size
  ensure
    application&.stop
  end

  test "without its settings an application is as it was" do
    application = CodecApplication.new
    assert_equal [500, 500], [application.get("/represented").status, application.get("/typed").status]
    assert_match(%r{\AW/}, application.get("/page", "text/html")["etag"])
  ensure
    application&.stop
  end

  WRONG = [{codec: "yes"}, {codec_params: true}, {codec: true, codec_params: 7}, {codec: true, codec_params: {max_size: 1}}, {codec: true, codec_params: {max_bytes: 0}},
    {codec: true, codec_params: {max_depth: "5"}}, {codec: true, codec_params: {max_depth: 501}}].freeze

  test "settings that do not fit stop the boot" do
    WRONG.each do |settings|
      given = Struct.new(:codec, :codec_params).new(settings[:codec], settings[:codec_params])
      assert_match(/config\.hikyaku\.codec/, assert_raises(Hikyaku::ConfigError) { Hikyaku::Railtie::CodecGlue.settle(given) }.message)
    end
  end

  private

  def get(...) = self.class.application.get(...)

  def assert_unmodified(answer, tag)
    assert_equal [304, "", tag, nil], [answer.status, answer.body, answer["etag"], answer["content-type"]]
  end
end
