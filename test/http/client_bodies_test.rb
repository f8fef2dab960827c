# frozen_string_literal: true

require "test_helper"
require "json"
require "pathname"
require "rack"
require "stringio"
require "tempfile"
require "hikyaku/http/client"
require "support/misbehaving"
require "support/rack_site"

# What a caller gives to be sent, as Rack's applications see it: json:, form:, params:.
class HTTPClientBodiesTest < Minitest::Test
  HTTP = Hikyaku::HTTP
  private_constant :HTTP

  # Says what came: the query as Rack reads it, the body as it was, the fields of the form, and of files their bytes, name and type.
  ECHO = lambda do |env|
    request = Rack::Request.new(env)
    length, encoding = env.values_at("CONTENT_LENGTH", "HTTP_TRANSFER_ENCODING")
    form = shown(request.POST) if request.form_data?
    body = request.body&.read.to_s.force_encoding("UTF-8") unless request.form_data?
    [200, {"content-type" => "application/json"}, [JSON.generate("method" => env["REQUEST_METHOD"], "type" => env["CONTENT_TYPE"], "length" => length, "coding" => encoding,
      "target" => env["REQUEST_URI"], "query" => request.GET, "form" => form, "body" => body)]]
  end

  def self.shown(value)
    case value
    when Hash
      return value.to_h { |name, inner| [name, shown(inner)] } unless value.key?(:tempfile)
      {"file" => value[:tempfile].read.unpack1("H*"), "name" => shown(value[:filename]), "type" => value[:type]}
    when Array then value.map { |inner| shown(inner) }
    when String then value.dup.force_encoding("UTF-8")
    end
  end

  def setup
    @client = HTTP::Client.new(memory: nil, proxy: nil, timeouts: {total: 120})
  end

  def teardown = @client.close

  test "an object goes as JSON, and says so" do
    echo do |site|
      {{"a" => [1, nil, "\u00E9"]} => nil, [] => nil, false => nil, "text" => nil, 5 => nil, {at: Time.at(0).utc} => {"at" => "1970-01-01T00:00:00.000Z"}}.each do |object, read|
        came = @client.post(site.url, json: object).json
        assert_equal ["application/json", read.nil? ? object : read], [came["type"], JSON.parse(came["body"])]
        assert_equal came["length"], came["body"].bytesize.to_s
      end
      assert_equal %w[PUT PATCH DELETE], [@client.put(site.url, json: 1), @client.patch(site.url, json: 1), @client.delete(site.url, json: 1)].map { |response| response.json["method"] }
      assert_equal [nil, "0"], @client.post(site.url, json: nil).json.values_at("type", "length")
    end
  end

  test "what is said of the body by the caller counts more, and what is said of each request less" do
    echo do |site|
      assert_equal "application/merge-patch+json", @client.patch(site.url, json: {}, headers: {"Content-Type" => "application/merge-patch+json"}).json["type"]
      own = HTTP::Client.new(memory: nil, proxy: nil, headers: {"content-type" => "text/plain"})
      assert_equal %w[application/json application/x-www-form-urlencoded text/plain], [{json: 1}, {form: {a: 1}}, {body: "x"}].map { |given| own.post(site.url, **given).json["type"] }
      assert_match %r{\Amultipart/form-data; boundary=}, own.post(site.url, form: {a: StringIO.new}).json["type"]
    ensure
      own&.close
    end
  end

  # What Rack reads of what is given.
  FORMS = {
    {:a => 1, "b" => "x y&=+~*\u00E9"} => {"a" => "1", "b" => "x y&=+~*\u00E9"}, {a: [1, 2], b: {c: {d: true}}} => {"a" => %w[1 2], "b" => {"c" => {"d" => "true"}}},
    {a: [{b: 1, c: 2}, {b: 3}]} => {"a" => [{"b" => "1", "c" => "2"}, {"b" => "3"}]}, {a: nil, b: "", c: [], d: {}} => {"a" => nil, "b" => ""},
    [["a", 1], ["a", 2], ["b[]", 3]] => {"a" => "2", "b" => ["3"]}, {"a" => String.new("\xE9", encoding: "ISO-8859-1")} => {"a" => "\u00E9"}, {"q\"[x]" => "\r\n\0"} => {"q\"" => {"x" => "\r\n\0"}},
    {"\u00E9" => {"\u00E8".b => {"\u00EA".encode("UTF-16LE") => ["\u00E0".encode("UTF-16BE")]}}} => {"\u00E9" => {"\u00E8" => {"\u00EA" => ["\u00E0"]}}}
  }.freeze
  private_constant :FORMS

  test "a form is nested as Rack reads it, in a body and in a query" do
    echo do |site|
      FORMS.each do |given, read|
        came = @client.post(site.url, form: given).json
        assert_equal ["application/x-www-form-urlencoded", read], came.values_at("type", "form"), given.inspect
        assert_equal read, @client.get(site.url, params: given).json["query"], given.inspect
      end
    end
  end

  test "bytes of a form are encoded as the URL Standard has it" do
    all = (0..127).map(&:chr).join
    expected = all.chars.map { |char| char.match?(/[A-Za-z0-9*._-]/) ? char : format("%%%02X", char.ord) }.join.sub("%20", "+")
    serve do |server|
      @client.get(server.url, params: {"x" => all})
      @client.get(server.url, params: {"x" => "\xFF\xC3\xA9".b})
      assert_equal ["/?x=#{expected}", "/?x=%FF%C3%A9"], server.log.map { |entry| entry[2] }
    end
  end

  test "params go behind the query that there is, before the fragment, and keep who is named in the URL" do
    serve do |server|
      {"/" => "/?a=1", "" => "/?a=1", "/x?" => "/x?a=1", "/x?b=%20c" => "/x?b=%20c&a=1", "/x?b&" => "/x?b&a=1", "/x?b=1#c?d" => "/x?b=1&a=1", "/x#c" => "/x?a=1", "/a/../b c" => "/b%20c?a=1"}.each do |path, target|
        base = server.url("").delete_suffix("/")
        [base + path, HTTP::Address.parse(base + path), URI::DEFAULT_PARSER.escape(base + path, / /)].each do |url|
          @client.get(url, params: {a: 1})
          assert_equal target, server.log.last[2], path
        end
      end
      @client.get(server.url("/x").sub("//", "//ada:secret@"), params: {a: 1})
      assert_equal ["/x?a=1", "Basic #{["ada:secret"].pack("m0")}"], server.log.last.then { |entry| [entry[2], entry[3]["authorization"]] }
      [nil, {}, []].each { |none| assert_equal "/y?z", @client.get(server.url("/y?z"), params: none).then { server.log.last[2] } }
      @client.get(server.url("/1"), server.url("/2?b"), params: {a: 1})
      assert_equal %w[/1?a=1 /2?b&a=1], server.log.last(2).map { |entry| entry[2] }.sort
      ["?", ""].each { |sign| assert_match(/longer than/, assert_raises(HTTP::InvalidURL) { @client.get(server.url("/#{sign}#{"x" * 9_000}"), params: {a: "y" * 9_000}) }.message) }
    end
  end

  test "what cannot be sent is refused before anything is asked, and named" do
    round = {}
    round[:again] = round
    {
      {json: 1, form: {}} => /json: and form: are given/, {body: "", json: 1} => /body: and json: are given/, {body: "x", form: {}} => /body: and form:/, {json: Object.new} => /represent/,
      {form: "a=1"} => /form: is a String/, {params: "a=1"} => /params: is a String/, {params: 5} => /params: is a Integer/, {form: [1]} => /form: is a Array/, {form: {a: Object.new}} => /"a" is a Object/,
      {form: {a: 1..2}} => /"a" is a Range/, {form: {a: "\xFF"}} => /"a" is not UTF-8/, {form: {"\xFF" => 1}} => /"\?" is not UTF-8/, {form: {"\u00E9" => {"\xFF" => 1}}} => /"\?" is not UTF-8/, {params: {"\u00E9" => Object.new}} => /"\u00E9" is a Object/, {form: round} => /more than 32 levels/,
      {params: {a: StringIO.new}} => /"a" is a StringIO; a file goes into form:/, {form: {a: Pathname(__FILE__)}} => /Pathname.*File\.open/, {body: Pathname(__FILE__)} => /Pathname.*File\.open/,
      {form: {a: StringIO.new}, headers: {"Content-Type": "multipart/form-data"}} => /boundary/
    }.each do |given, message|
      error = assert_raises(ArgumentError, given.keys.inspect) { @client.post("http://127.0.0.1:1/", **given) }
      assert_match message, error.message
    end
    assert_match(/Pathname.*File\.open/, assert_raises(ArgumentError) { HTTP::Part.new(Pathname(__FILE__)) }.message)
    assert_match(/control/, assert_raises(ArgumentError) { HTTP::Part.new("x", content_type: "a/b\r\nX: y") }.message)
  end

  test "a form with files is multipart, with its length where all say theirs, and Rack reads what was meant" do
    bytes = Random.bytes(200_000)
    Tempfile.create(["a \"b\"", ".bin"]) do |file|
      file.binmode
      file.write("skipped", bytes)
      file.flush
      file.seek(7)
      upload = Struct.new(:io, :original_filename, :content_type) { def read(...) = io.read(...) }.new(StringIO.new("up"), "up.txt", "text/plain")
      echo do |site|
        given = {"user" => {avatar: file, name: "Ad\u00E1"}, :texts => [1, nil], "part" => HTTP::Part.new("{}", content_type: "application/json"),
                 :named => HTTP::Part.new(bytes, filename: "\u98DB\u811A.png", content_type: "image/png"), :io => StringIO.new("io"), :up => upload, :empty => StringIO.new}
        came = @client.post(site.url, form: given.except(:up)).json
        assert_match(/\A\d+\z/, came["length"])
        form = came["form"]
        assert_equal({"file" => bytes.unpack1("H*"), "name" => File.basename(file.path), "type" => "application/octet-stream"}, form["user"]["avatar"])
        assert_equal ["Ad\u00E1", ["1", ""], "{}"], [form["user"]["name"], form["texts"], form["part"]]
        assert_equal({"file" => bytes.unpack1("H*"), "name" => "\u98DB\u811A.png", "type" => "image/png"}, form["named"])
        assert_equal [{"file" => "io".unpack1("H*"), "name" => "file", "type" => "application/octet-stream"}, ""], [form["io"], form["empty"]["file"]]
        assert_equal [{"file" => "up".unpack1("H*"), "name" => "up.txt", "type" => "text/plain"}, nil], @client.post(site.url, form: {up: upload.tap { |one| one.io.rewind }}).json.then { |all| [all["form"]["up"], all["type"][/charset/]] }
      end
    end
  end

  test "names of a multipart form are escaped as browsers do" do
    request, = raw_multipart(form: {"a\"b\nc\r\nd\re" => HTTP::Part.new("x", filename: "q\"\r\n\\.txt")})
    assert_includes request, %(Content-Disposition: form-data; name="a%22b%0D%0Ac%0D%0Ad%0D%0Ae"; filename="q%22%0D%0A\\.txt"\r\nContent-Type: application/octet-stream\r\n\r\nx\r\n)
  end

  test "names of files are written as UTF-8, and those that are no text as the bytes that they are" do
    names = {"\u00E9".encode("UTF-16LE") => "\u00E9", String.new("\xE9", encoding: "ISO-8859-1") => "\u00E9", "\u98DB\"".encode("Shift_JIS") => "\u98DB%22", "\xE9" => "\xE9", "\u00E9".b => "\u00E9", String.new("\u00E9", encoding: "US-ASCII") => "\u00E9"}
    names.each do |given, written|
      body, = raw_multipart(form: {a: HTTP::Part.new("x", filename: given)})
      assert_includes body.b, %(; filename="#{written}"\r\n).b, given.inspect
    end
  end

  test "the boundary is another each time, and stands in nothing that is sent" do
    boundaries = Array.new(3) { raw_multipart(form: {a: HTTP::Part.new("x")}).last[/boundary=(.*)/, 1] }
    assert_equal boundaries.uniq, boundaries
    boundaries.each { |boundary| assert_match(/\A[-0-9A-Za-z]{30,70}\z/, boundary) }
  end

  test "a pipe in a form goes in chunks, and nothing else waits for it" do
    echo do |site|
      IO.pipe do |one, first|
        IO.pipe do |other, second|
          fetch = @client.fetch(site.url, method: "POST", form: {a: StringIO.new("before"), b: one, c: other, d: "after"})
          5.times { |n| assert_equal "/#{n}", @client.get(site.url("/#{n}")).json["target"] }
          refute_predicate fetch, :done?
          first << "x" * 50_000
          first.close
          assert_equal "/more", @client.get(site.url("/more")).json["target"]
          second << "y"
          second.close
          form = fetch.value.json["form"]
          assert_equal ["before", "x" * 50_000, "y"], %w[a b c].map { |name| [form[name]["file"]].pack("H*") }
          assert_equal "after", form["d"]
        end
      end
    end
  end

  test "a file that ends before its time fails its request, and the server has no whole one" do
    seen = Queue.new
    RackSite.run(->(env) { seen << env["REQUEST_METHOD"] and [200, {}, []] }) do |site|
      short = StringIO.new("x" * 10)
      short.define_singleton_method(:size) { 20 }
      error = assert_raises(HTTP::BodyFailed) { @client.post(site.url, form: {a: short}) }
      assert_match(/bytes that were announced/, error.message)
      assert_predicate seen, :empty?
    end
  end

  test "a form of a POST that becomes a GET leaves nothing behind, and one with files is not sent twice" do
    serve(->(request) { "HTTP/1.1 #{request.path[1..]} x\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n" if request.path.match?(/\d/) }) do |server|
      @client.post(server.url("/303"), form: {a: 1})
      assert_equal ["GET", nil, nil], server.log.last.then { |entry| [entry[1], *entry[3].values_at("content-type", "content-length")] }
      @client.post(server.url("/307"), form: {a: 1})
      assert_equal %w[POST application/x-www-form-urlencoded 3], server.log.last.then { |entry| [entry[1], *entry[3].values_at("content-type", "content-length")] }
      @client.post(server.url("/307"), form: {a: HTTP::Part.new("x")})
      assert_equal "POST", server.log.last[1]
      assert_raises(HTTP::BadRedirect) { @client.post(server.url("/307"), form: {a: StringIO.new("x")}) }
    end
  end

  private

  def echo(&block) = RackSite.run(ECHO, &block)

  def serve(told = ->(_) {}, &block) = Misbehaving.run(Misbehaving::AsTold.new { |request, _| told.call(request) }, &block)

  # @return [Array(String, String)] the body, and its Content-Type
  def raw_multipart(**given)
    RackSite.run(->(env) { [200, {"x-type" => env["CONTENT_TYPE"]}, [env["rack.input"].read]] }) do |site|
      response = @client.post(site.url, **given)
      [response.body, response["x-type"]]
    end
  end
end
