# frozen_string_literal: true

require "test_helper"
require "json"
require "msgpack"
require "open3"
require "rack/lint"
require "rack/mock_request"
require "rbconfig"
require "hikyaku/codec/rack/representation"

# The same thing as JSON and as MessagePack, as the client asks, in plain Rack.
class CodecRackRepresentationTest < Minitest::Test
  Representation = Hikyaku::Codec::Rack::Representation
  ROOT = File.expand_path("../../..", __dir__)
  ITEMS = [{name: "Hōryū", price: 12.5}, {name: "Dune", tags: %i[a b], at: nil}].freeze
  PLAIN = JSON.parse(JSON.generate(ITEMS)).freeze
  PACKED = "application/vnd.msgpack"

  Answer = Struct.new(:status, :headers, :bytes) do
    def [](name) = headers[name]

    def value = (self["content-type"] == PACKED) ? MessagePack.unpack(bytes) : JSON.parse(bytes)
  end

  ASKED = {
    nil => :json, "" => :json, "*/*" => :json, "application/json" => :json, "application/vnd.msgpack" => :msgpack, "application/msgpack" => :msgpack,
    "application/x-msgpack" => :msgpack, "Application/X-MPAC" => :msgpack, "application/json;q=0.5, application/vnd.msgpack" => :msgpack,
    "application/vnd.msgpack;q=0.5, application/json" => :json, "application/*, application/json;q=0.1" => :msgpack,
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" => :json, "application/json;q=0, */*" => :msgpack
  }.freeze

  test "the client gets what it likes best, of the type that it says" do
    ASKED.each do |accept, format|
      answer = get(accept: accept)
      assert_equal [200, Hikyaku::Codec[format].media_type], [answer.status, answer["content-type"]], accept.inspect
      assert_equal PLAIN, answer.value
      assert_equal answer.bytes.bytesize.to_s, answer["content-length"]
      assert_equal "Accept", answer["vary"]
    end
  end

  test "the application says what is offered, and what of it it likes itself" do
    assert_equal PACKED, get(formats: %i[msgpack json])["content-type"]
    assert_equal PACKED, get(formats: %i[mpac json], accept: "*/*")["content-type"]
    answer = get(formats: [:msgpack], accept: "application/json")
    assert_equal [200, PACKED, nil], [answer.status, answer["content-type"], answer["vary"]]
    assert_raises(Hikyaku::Codec::UnknownFormat) { get(formats: [:xml]) }
  end

  test "what is not offered is refused with a sentence that names what is" do
    ["text/html", "application/json;q=0, application/vnd.msgpack;q=0", "*/*;q=0", "application/cbor"].each do |accept|
      answer = get(accept: accept)
      assert_equal [406, "application/problem+json", "Accept", "no-store"], [answer.status, *answer.headers.values_at("content-type", "vary", "cache-control")], accept
      problem = JSON.parse(answer.bytes)
      assert_equal [406, "Not Acceptable", ["application/json", PACKED]], problem.values_at("status", "title", "offered")
      assert_match(%r{application/json or application/vnd\.msgpack}, problem["detail"])
      assert_equal [406, ""], get(accept: accept, method: "HEAD").then { |head| [head.status, head.bytes] }
    end
  end

  HOSTILE = ["x" * 100_000, "application/json," * 10_000, ";;;,,,=\"", "application/json;q=#{"9" * 5_000}", "\xFF\xFE/\x00", "application/vnd.msgpack\u0000", "*/*;q=NaN"].freeze

  test "fields that lie get an answer of a type that it has, or a 406" do
    HOSTILE.each do |accept|
      answer = get(accept: accept)
      assert_includes [200, 406], answer.status, accept[0, 20]
      assert_equal PLAIN, answer.value if answer.status == 200
    end
  end

  test "each representation has a strong entity tag of its own, by which it is known again" do
    tags = ["application/json", PACKED].to_h { |accept| [accept, get(accept: accept)["etag"]] }
    assert_equal 2, tags.values.uniq.size
    tags.each_value { |tag| assert_match(/\A"\h{32}"\z/, tag) }
    tags.each do |accept, tag|
      [tag, "W/#{tag}", "\"other\", #{tag}", "*", " * "].each { |field| assert_unmodified get(accept: accept, if_none_match: field), tag }
      [(tags.values - [tag]).first, "\"other\"", tag.delete('"'), "", "#{'"x", ' * 5_000}#{tag}"].each do |field|
        assert_equal 200, get(accept: accept, if_none_match: field).status, field[0, 40]
      end
    end
    refute_equal tags["application/json"], get(object: [], accept: "application/json")["etag"]
  end

  test "what the application says of the version makes the tags, and nothing is encoded for a client that has it" do
    tags = ["application/json", PACKED].to_h { |accept| [accept, get(accept: accept, etag: "version 1")["etag"]] }
    assert_equal 2, tags.values.uniq.size
    refute_equal tags[PACKED], get(accept: PACKED, etag: "version 2")["etag"]
    unencodable = [Object.new.tap { |object| object.instance_eval { def as_json(*) = raise("encoded") } }]
    tags.each { |accept, tag| assert_unmodified get(object: unencodable, accept: accept, etag: "version 1", if_none_match: tag), tag }
    assert_equal "encoded", assert_raises(RuntimeError) { get(object: unencodable, etag: "version 1", if_none_match: tags[PACKED]) }.message
  end

  test "without a tag, for another status and for another method nothing is unmodified" do
    assert_equal [200, nil], get(etag: false, if_none_match: "*").then { |answer| [answer.status, answer["etag"]] }
    assert_equal [201, nil], get(status: 201, if_none_match: "*").then { |answer| [answer.status, answer["etag"]] }
    assert_equal [200, nil], get(method: "POST", if_none_match: "*").then { |answer| [answer.status, answer["etag"]] }
  end

  test "a HEAD has the fields of a GET, and no body" do
    [nil, PACKED].each do |accept|
      answer, head = %w[GET HEAD].map { |method| get(accept: accept, method: method) }
      assert_equal [answer.status, answer.headers, ""], [head.status, head.headers, head.bytes]
      assert_unmodified get(accept: accept, method: "HEAD", if_none_match: head["etag"]), head["etag"]
    end
  end

  test "the application's own fields are there, and stay with a 304" do
    given = {"cache-control" => "private", "vary" => "Cookie", "content-type" => "application/geo+json"}
    answer = get(headers: given)
    assert_equal ["private", "Cookie, Accept"], answer.headers.values_at("cache-control", "vary")
    unmodified = get(headers: given, if_none_match: answer["etag"])
    assert_equal ["private", "Cookie, Accept"], unmodified.headers.values_at("cache-control", "vary")
    assert_equal ["application/geo+json", nil], [answer, unmodified].map { |each| each["content-type"] }
    assert_equal "Cookie", given["vary"]
    ["accept", "Accept-Encoding, Accept", "*"].each { |vary| assert_equal vary, get(headers: {"vary" => vary})["vary"] }
  end

  test "there is one field Vary, whatever the case in which it is given, and as often as it is" do
    {
      {"Vary" => "Cookie"} => "Cookie, Accept", {"VARY" => "accept"} => "accept", {"Vary" => "Cookie", "vary" => "Origin"} => "Cookie, Origin, Accept",
      {"Vary" => %w[Cookie Origin]} => "Cookie, Origin, Accept", {"Vary" => nil} => "Accept", {"Vary" => []} => "Accept", {"Vary" => ""} => "Accept"
    }.each do |fields, expected|
      [{}, {accept: "text/html"}, {if_none_match: "*"}].each do |asked|
        headers = get(headers: fields, **asked).headers
        assert_equal [[expected], ["vary"]], [headers.select { |name, _| name.casecmp?("vary") }.values, headers.keys.grep(/\Avary\z/i)], fields.inspect
      end
    end
    assert_equal [["application/geo+json"], "a"], get(headers: {"Content-Type" => "application/geo+json", "X-Own" => "a"}).headers.then { |found| [found.select { |name, _| name.casecmp?("content-type") }.values, found["x-own"]] }
    assert_equal "Cookie, Origin", get(formats: [:json], headers: {"Vary" => %w[Cookie Origin]})["vary"]
  end

  test "an Enumerator becomes an array, and is asked for one item at a time" do
    taken = 0
    rows = Enumerator.new(3_000) { |yielder| 3_000.times { |n| yielder << {"id" => taken = n, "text" => "x" * 50} } }
    [nil, PACKED].each do |accept|
      status, headers, body = call(rows, accept: accept)
      assert_equal [200, nil, nil], [status, headers["content-length"], headers["etag"]]
      pieces = []
      first = nil
      body.each do |piece|
        first ||= taken
        pieces << piece
      end
      assert_operator first, :<, 1_000
      assert_operator pieces.size, :>, 5
      value = Answer.new(status, headers, pieces.join).value
      assert_equal [3_000, {"id" => 2_999, "text" => "x" * 50}], [value.size, value.last]
      taken = nil
      assert_equal ["", nil], [get(object: rows, accept: accept, method: "HEAD").bytes, taken]
    end
  end

  test "MessagePack is told how many there are, and a body that breaks is seen to" do
    rows = Enumerator.new { |yielder| 3.times { |n| yielder << n } }
    assert_equal [0, 1, 2], get(object: rows).value
    assert_raises(Hikyaku::Codec::WrongCount) { call(rows, accept: PACKED) }
    assert_equal [0, 1, 2], get(object: rows, accept: PACKED, count: 3).value
    [2, 4].each { |count| assert_raises(Hikyaku::Codec::WrongCount) { get(object: rows, accept: PACKED, count: count) } }
    broken = Enumerator.new(2) { |yielder| raise IOError, "gone" if yielder << 1 }
    assert_raises(IOError) { get(object: broken) }
  end

  test "a body makes of each item what is said" do
    body = Hikyaku::Codec::Rack::Body.new(Hikyaku::Codec[:msgpack], [1, 2, 3].each) { |n| {"n" => n * 2} }
    assert_equal [{"n" => 2}, {"n" => 4}, {"n" => 6}], MessagePack.unpack(body.to_enum.to_a.join)
  end

  MEMORY = <<~RUBY
    require "rack/mock_request"
    require "hikyaku/codec/rack/representation"
    def peak = File.read("/proc/self/status")[/VmHWM:\\s+(\\d+)/, 1].to_i
    rows = ->(count) { Enumerator.new(count) { |yielder| count.times { |n| yielder << {"id" => n, "name" => "item \#{n}", "text" => "x" * 180} } } }
    answer = lambda do |count|
      _, _, body = Hikyaku::Codec::Rack::Representation.represent(rows.call(count), Rack::MockRequest.env_for("/", "HTTP_ACCEPT" => ARGV[0]))
      size = 0
      body.each { |piece| size += piece.bytesize }
      size
    end
    answer.call(20_000)
    before = peak
    puts answer.call(200_000), peak - before
  RUBY

  test "two hundred thousand rows take no more memory than a few" do
    skip "needs /proc" unless File.exist?("/proc/self/status")
    [nil, PACKED].each do |accept|
      output, errors, status = Open3.capture3(RbConfig.ruby, "-I#{ROOT}/lib", "-e", MEMORY, accept.to_s, chdir: ROOT)
      assert status.success?, errors
      size, grown = output.lines.map(&:to_i)
      assert_operator size, :>, 40_000_000
      assert_operator grown, :<, 10_000, "KiB more for #{size} bytes of #{accept.inspect}"
    end
  end

  private

  def call(object = ITEMS, accept: nil, if_none_match: nil, method: "GET", **options)
    env = Rack::MockRequest.env_for("/items", method: method)
    env["HTTP_ACCEPT"] = accept.b if accept
    env["HTTP_IF_NONE_MATCH"] = if_none_match if if_none_match
    Rack::Lint.new(->(request) { Representation.represent(object, request, **options) }).call(env)
  end

  def get(object: ITEMS, **options)
    status, headers, body = call(object, **options)
    bytes = +"".b
    body.each { |piece| bytes << piece }
    Answer.new(status, headers, bytes)
  ensure
    body.close if body.respond_to?(:close)
  end

  def assert_unmodified(answer, tag)
    assert_equal [304, "", tag, nil, nil], [answer.status, answer.bytes, *answer.headers.values_at("etag", "content-type", "content-length")]
    assert_equal "Accept", answer["vary"]
  end
end
