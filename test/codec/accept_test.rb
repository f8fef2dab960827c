# frozen_string_literal: true

require "test_helper"
require "hikyaku/codec"

# RFC 9110, sections 12.4.2 and 12.5.1.
class CodecAcceptTest < Minitest::Test
  Codec = Hikyaku::Codec

  # What a field chooses of JSON and MessagePack, in this order.
  CHOSEN = {
    nil => :json,
    "" => :json,
    "*/*" => :json,
    "application/json" => :json,
    "application/vnd.msgpack" => :msgpack,
    "application/msgpack" => :msgpack,
    "application/x-msgpack" => :msgpack,
    "application/x-mpac" => :msgpack,
    "APPLICATION/X-MPAC" => :msgpack,
    "application/*" => :json,
    "text/html" => nil,
    "text/*;q=0.9, image/png" => nil,
    # weights
    "application/json;q=0.5, application/vnd.msgpack;q=0.501" => :msgpack,
    "application/json;q=0.502, application/vnd.msgpack;q=0.501" => :json,
    "application/json ; q=0.1 , application/vnd.msgpack ; Q=1.000" => :msgpack,
    "application/json;q=0" => nil,
    "application/json;q=0.000, */*;q=0.001" => :msgpack,
    "application/json;q=0, application/*" => :msgpack,
    "*/*;q=0" => nil,
    "*/*;q=0, application/x-msgpack" => :msgpack,
    # the more exact range decides, whichever comes first
    "*/*, application/json;q=0.1, application/*;q=0.5" => :msgpack,
    "application/*;q=0.5, application/vnd.msgpack;q=0" => :json,
    "application/vnd.msgpack;q=0, application/*;q=0.5, application/json;q=0" => nil,
    # one name of a format that is refused is not all of them
    "application/vnd.msgpack;q=0, application/x-msgpack" => :msgpack,
    # at the same weight: who is named, then who is named first
    "application/vnd.msgpack, */*" => :msgpack,
    "*/*, application/vnd.msgpack" => :msgpack,
    "application/*, application/vnd.msgpack" => :msgpack,
    "application/json, text/plain, */*" => :json,
    "application/vnd.msgpack, application/json" => :msgpack,
    "application/json, application/vnd.msgpack" => :json,
    # parameters do not matter, but what has none is more exact
    "application/json;charset=utf-8" => :json,
    "application/vnd.msgpack;version=2;q=0.8, application/json;q=0.7" => :msgpack,
    "application/json;odata=verbose;q=0.1, application/json;q=0.9, application/msgpack;q=0.5" => :json,
    "application/json;x=\"a,b;q=0\\\", application/json;q=0\";q=1, application/vnd.msgpack;q=0.9" => :json,
    "application/vnd.msgpack;q=0.5;extension=1, application/json;q=0.4" => :msgpack,
    "application/json;v=1;q=0.9, application/json;q=0.1, application/msgpack;q=0.5" => :msgpack,
    "application/json;Q=0.1, application/vnd.msgpack;q=0.2" => :msgpack,
    # garbage is passed over
    ",, ,application/vnd.msgpack,," => :msgpack,
    "json, */json, application/vnd.msgpack;q=0.1" => :msgpack,
    "application/json;q=2, application/vnd.msgpack;q=0.1" => :msgpack,
    "application/json;q=0.1234, application/vnd.msgpack;q=0.1" => :msgpack,
    "application/json;q=\"1\", application/vnd.msgpack;q=0.1" => :msgpack,
    "application/json;q=-1, application/vnd.msgpack;q=0.1" => :msgpack,
    "application/json x, application/vnd.msgpack;q=0.1" => :msgpack,
    "application/ json, application/vnd.msgpack;q=0.1" => :msgpack,
    "application/json;=, application/vnd.msgpack;q=0.1" => :msgpack,
    "\xff/\xfe, application/vnd.msgpack" => :msgpack,
    "application/vnd.msgpack, \"unfinished" => :msgpack,
    # nothing that can be understood is said
    ";;;" => :json,
    "json" => :json,
    # Java's URLConnection, for twenty years
    "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2" => :json,
    # a browser
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8" => :json
  }.freeze

  test "of JSON and MessagePack, a field chooses by weight, then by how exactly it names one, then by its own order" do
    assert_equal CHOSEN, CHOSEN.to_h { |header, _| [header, Codec.negotiate(header)&.name] }
  end

  test "what is offered first is what a client gets that accepts anything" do
    offered = [Codec[:msgpack], Codec[:json]]
    assert_equal :msgpack, Codec.negotiate(nil, offered).name
    assert_equal :msgpack, Codec.negotiate("*/*", offered).name
    assert_nil Codec.negotiate("application/vnd.msgpack", [Codec[:json]])
    assert_nil Codec.negotiate("application/json", [])
  end

  test "several fields are one" do
    assert_equal :msgpack, Codec.negotiate(["application/json;q=0.5", "application/x-mpac"]).name
    assert_equal 0.5, Codec::Accept.parse(["application/json;q=0.5", "application/x-mpac"]).quality("application/json")
  end

  test "a quality is 0 to 1" do
    accept = Codec::Accept.parse("application/json;q=0.123, application/*;q=0.5, text/html;q=1")
    assert_equal [0.123, 0.5, 1.0, 0.0], ["application/json", "application/x", "text/html", "image/png"].map { |type| accept.quality(type) }
    assert_equal 1.0, Codec::Accept.parse(nil).quality("image/png")
  end

  test "no more than 64 members are read, and no more than 4 KiB" do
    assert_equal :msgpack, Codec.negotiate("a/b, " * 63 + "application/vnd.msgpack").name
    assert_nil Codec.negotiate("a/b, " * 64 + "application/vnd.msgpack")
    long = "a/#{"b" * 4_060}, application/vnd.msgpack"
    assert_equal :msgpack, Codec.negotiate(long).name
    assert_nil Codec.negotiate("a/b, a/#{"b" * 4_080}, application/json")
    # A member that would be cut is none.
    assert_nil Codec.negotiate("a/b, a/#{"b" * 4_056}, application/vnd.msgpack;q=0.001, application/json;q=0")
  end

  # Where reading them took time that grows with the square of their length, this would be seen.
  test "hostile fields are read to their end" do
    ["\"" * 4_096, "a/b;x=\"#{"\\" * 4_000}", "a/b#{";" * 4_000}", "a/b;#{" " * 4_000}x", "," * 4_096, "a" * 1_000_000, "a/b;a=b" * 500,
      "\"\\" * 2_000, "a/a;a=\"\";" * 400].each do |header|
      assert_includes [nil, :json], Codec.negotiate(header)&.name
    end
  end

  MEMBERS = ["application/json", "application/vnd.msgpack", "application/x-mpac", "application/*", "*/*", "text/*", "text/html", "APPLICATION/JSON"].freeze
  WEIGHTS = {"" => 1.0, ";q=0" => 0.0, "; q=0.5" => 0.5, ";Q=1.000" => 1.0, ";q=.25" => 0.25, ";q=0.001" => 0.001}.freeze

  test "random fields with random weights, and members twice, are read as the specification says" do
    random = Random.new(8)
    2_000.times do
      members = Array.new(random.rand(1..6)) { [MEMBERS.sample(random: random), WEIGHTS.keys.sample(random: random)] }
      field = members.map(&:join).join([",", ", ", " ,\t"].sample(random: random))
      accept = Codec::Accept.parse(field)
      ["application/json", "application/vnd.msgpack", "text/html", "image/png"].each { |type| assert_equal expected(members, type), accept.quality(type), "#{type}: #{field}" }
      chosen = Codec.negotiate(field)
      assert_equal [chosen], [Codec.negotiate("#{field}, #{field}")], field
      assert_equal chosen.nil?, Codec.formats.none? { |format| accept.quality(format.media_types).positive? }, field
    end
  end

  test "garbage between members changes nothing, and garbage alone is read to its end" do
    random = Random.new(8)
    garbage = ["json", "application/json;q=7", "a/b;q=NaN", ";;", "=", "\x00", "\xff".b, "*/json", "q=0", "a/b;q=0.0000", "/", "application/"]
    1_000.times do
      members = Array.new(random.rand(1..4)) { MEMBERS.sample(random: random) + WEIGHTS.keys.sample(random: random) }
      between = members.flat_map { |member| [*garbage.sample(random.rand(3), random: random), member] }.map(&:b)
      assert_equal [Codec.negotiate(members.join(","))], [Codec.negotiate(between.join(","))], between.inspect
      bytes = Array.new(random.rand(20)) { [*garbage, ",", ";", "\"", "\\", " ", *MEMBERS].sample(random: random).b }.join
      assert_includes [nil, :json, :msgpack], Codec.negotiate(bytes)&.name
    end
  end

  test "what is raised for a 406 names what is offered" do
    error = Codec::NotAcceptable.new(Codec.formats)
    assert_equal "nothing that the field Accept asks for is offered; there is application/json (json) and application/vnd.msgpack (msgpack)", error.message
    assert_equal %i[json msgpack], error.formats.map(&:name)
    assert_kind_of Hikyaku::Error, error
  end

  private

  # RFC 9110, section 12.5.1, for members without parameters: the most exact range that fits a type decides.
  def expected(members, type)
    [type, "#{type[%r{[^/]+}]}/*", "*/*"].each do |range|
      weights = members.filter_map { |name, weight| WEIGHTS.fetch(weight) if name.casecmp?(range) }
      return weights.max if weights.any?
    end
    0.0
  end
end
