# frozen_string_literal: true

require "test_helper"
require "hikyaku/codec"
require "json"
require "open3"
require "support/availability"
require "support/generated_objects"

# What Ruby writes, JavaScript reads and writes again, and Ruby reads that: both say the same of an object, in both formats. What hikyaku-msgpack.js does
# where the languages differ stands at its head.
class RoundTripsTest < Minitest::Test
  include Availability

  Codec = Hikyaku::Codec
  PACKED = Codec[:msgpack]
  TEXT = Codec[:json]
  SEED = Integer(ENV.fetch("HIKYAKU_TEST_SEED", "8"))
  DRIVER = File.expand_path("../support/node/round_trips.mjs", __dir__)
  # What a number of JavaScript holds exactly.
  EXACT = (-2**53 + 1..2**53 - 1)

  def setup
    @node, = skip_unless_available("node")
  end

  test "generated objects come back as they were, and both formats say the same of them" do
    generator = GeneratedObjects.new(Random.new(SEED))
    objects = Array.new(300) { [generator.next, generator.next] }
    answers = through_node(objects.map { |object| [PACKED.dump(object), TEXT.dump(object)] })
    objects.zip(answers) do |object, answer|
      assert_nil answer["error"]
      assert_alike PACKED.load(PACKED.dump(object)), unpacked(answer)
      assert_alike numbers(TEXT.load(TEXT.dump(object))), numbers(TEXT.load(answer["json"]))
      assert answer["same"], object.inspect
    end
  end

  test "integers to 64 bits come back exactly, in the same bytes, those beyond 53 bits as BigInts; JSON has them rounded" do
    edges = (0..64).flat_map { |bits| [2**bits - 1, 2**bits, 2**bits + 1] }.flat_map { |number| [number, -number] }
    random = Random.new(SEED)
    integers = (edges + Array.new(500) { random.rand(-2**63..2**64 - 1) >> random.rand(64) }).grep(-2**63..2**64 - 1).uniq
    bytes, text = PACKED.dump(integers), TEXT.dump(integers)
    answer, = through_node([[bytes, text]])
    assert_equal bytes, answer["msgpack"].unpack1("m0")
    assert_equal integers.map { |integer| EXACT.cover?(integer) ? "number" : "bigint" }, answer["kinds"]
    assert_equal integers.map { |integer| EXACT.cover?(integer) ? integer : integer.to_f }, TEXT.load(answer["json"]).map { |integer| EXACT.cover?(integer) ? integer : integer.to_f }
  end

  test "floats come back bit by bit, but that a whole one is an integer" do
    random = Random.new(SEED)
    floats = (GeneratedObjects::FLOATS + Array.new(1_000) { random.bytes(8).unpack1("G") } + [1.0, -3.0, 2.0**53, 2.0**60, 2.0**-1074]).select(&:finite?)
    answer, = through_node([[PACKED.dump(floats), TEXT.dump(floats)]])
    back = unpacked(answer)
    whole = ->(float) { EXACT.cover?(float) && float == float.to_i && 1 / float != -Float::INFINITY }
    assert_equal floats.map { |float| whole[float] ? float.to_i : [float].pack("G") }, back.map { |number| number.is_a?(Float) ? [number].pack("G") : number }
    assert answer["same"]
    assert_equal floats, TEXT.load(answer["json"]).map(&:to_f)
  end

  test "NaN and Infinity are written by neither, and refused by both where somebody else has written them" do
    [Float::NAN, Float::INFINITY, -Float::INFINITY].each do |number|
      [PACKED, TEXT].each { |format| assert_raises(Codec::Unrepresentable) { format.dump([number]) } }
      foreign = [0xcb, number].pack("CG")
      assert_raises(Codec::Malformed) { PACKED.load(foreign) }
      assert_match(/Malformed: .*none or endless/, through_node([[foreign]]).first["error"])
    end
  end

  test "text with every character of Unicode comes back in the same bytes, in both formats" do
    points = [*0..0xd7ff, *0xe000..0x10ffff]
    texts = points.each_slice(20_000).map { |slice| slice.pack("U*") }
    bytes, text = PACKED.dump(texts), TEXT.dump(texts)
    answer, = through_node([[bytes, text]])
    assert_equal bytes, answer["msgpack"].unpack1("m0")
    assert_equal texts, TEXT.load(answer["json"])
    assert answer["same"]
  end

  test "binary data and text are told apart, of every length" do
    values = [0, 1, 31, 32, 255, 256, 65_535, 65_536].flat_map { |length| [Random.new(length).bytes(length), "x" * length] } + [nil, {"a" => "\xFF".b}]
    bytes = PACKED.dump(values)
    answer, = through_node([[bytes]])
    assert_equal bytes, answer["msgpack"].unpack1("m0")
    assert_equal %w[Uint8Array string] * 8 + %w[null Object], answer["kinds"]
  end

  test "moments come back to the nanosecond, as far as a Date of JavaScript goes" do
    random = Random.new(SEED)
    seconds = [0, 1, -1, 2**32 - 1, 2**32, 2**34 - 1, 2**34, -2**34, 8_640_000_000_000, -8_640_000_000_000] + Array.new(200) { random.rand(-2**36..2**36) }
    moments = seconds.flat_map { |second| [0, 1, 999_999_999, random.rand(1_000_000_000)].map { |rest| Time.at(second, rest, :nsec).utc } }
    moments.reject! { |moment| moment.to_r.abs > 8_640_000_000_000 }
    bytes = PACKED.dump(moments)
    answer, = through_node([[bytes]])
    assert_equal bytes, answer["msgpack"].unpack1("m0")
    assert_equal ["Timestamp"], answer["kinds"].uniq
    assert_match(/timestamp that is none/, through_node([[PACKED.dump(Time.at(8_640_000_000_001))]]).first["error"])
  end

  private

  # @param pairs [Array<Array(String, String)>] MessagePack, and JSON if any
  # @return [Array<Hash>]
  def through_node(pairs)
    lines = pairs.map { |bytes, text| JSON.generate({msgpack: [bytes].pack("m0"), json: text&.dup&.force_encoding(Encoding::UTF_8)}.compact) }
    output, status = Open3.capture2(@node, DRIVER, stdin_data: lines.join("\n"))
    assert_predicate status, :success?
    output.lines.map { |line| JSON.parse(line) }.tap { |answers| assert_equal pairs.size, answers.size }
  end

  def unpacked(answer) = PACKED.load(answer["msgpack"].unpack1("m0"))

  # JSON's integers that JavaScript rounds.
  def numbers(value)
    case value
    when Integer then EXACT.cover?(value) ? value : value.to_f
    when Array then value.map { |each| numbers(each) }
    when Hash then value.transform_values { |each| numbers(each) }
    else value
    end
  end

  # Equal, and texts of the same encoding.
  def assert_alike(expected, actual)
    assert_equal expected, actual
    assert_equal encodings(expected), encodings(actual)
  end

  def encodings(value)
    case value
    when String then value.encoding
    when Array then value.map { |each| encodings(each) }
    when Hash then value.map { |key, each| [key.encoding, encodings(each)] }.tally
    end
  end
end
