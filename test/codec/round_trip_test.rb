# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "hikyaku/codec"
require "support/generated_objects"

# What is written is read again, and both formats say the same of an object.
class CodecRoundTripTest < Minitest::Test
  Codec = Hikyaku::Codec
  SEED = Integer(ENV.fetch("HIKYAKU_TEST_SEED", "8"))

  test "JSON and MessagePack of the same object agree, but for what only one of them has" do
    objects.each do |object|
      json = Codec[:json].load(Codec[:json].dump(object))
      packed = Codec[:msgpack].load(Codec[:msgpack].dump(object))
      assert_equal as_text(json), as_text(packed)
    end
  end

  test "what was read is written as it was" do
    %i[json msgpack].each do |name|
      objects.each do |object|
        bytes = Codec[name].dump(object)
        assert_equal bytes, Codec[name].dump(Codec[name].load(bytes))
      end
    end
  end

  test "JSON without JSON::Coder, as older versions of json are, is the same" do
    long = Codec::JSON::Engine.stub(:coder, nil) { objects.map { |object| Codec[:json].dump(object) } }
    assert_equal objects.map { |object| Codec[:json].dump(object) }, long
  end

  test "what the extension in C finds plain is packed as what Ruby makes of it" do
    skip_unless_native
    random = Random.new(SEED)
    found = {true => 0, false => 0}
    300.times do
      object = GeneratedObjects.new(random, kinds: random.rand(2).zero? ? GeneratedObjects::PLAIN : GeneratedObjects::ALL).next
      plain = Codec::Plain.native?(object, 100, true)
      found[plain] += 1
      assert_equal packed(Codec::Plain::Conversion::MESSAGE_PACK.of(object)), packed(object) if plain
    end
    assert found.values.all? { |count| count > 50 }, found.inspect
  end

  private

  def objects
    random = Random.new(SEED)
    generator = GeneratedObjects.new(random)
    Array.new(150) { [generator.next, generator.next] }
  end

  def packed(object) = Codec::MessagePack::Packer.send(:pack, object)

  def skip_unless_native
    skip "the extension in C is not compiled" unless Codec::Plain.native_there?
  end

  # What MessagePack has and JSON has not, and the other way round.
  def as_text(value)
    case value
    when Hash then value.transform_values { |each| as_text(each) }
    when Array then value.map { |each| as_text(each) }
    when Time then moment(value)
    when /\A-?\d{1,5}-\d\d-\d\dT/ then moment(Time.xmlschema(value))
    when Integer then (-2**63..2**64 - 1).cover?(value) ? value : value.to_s
    else value
    end
  end

  def moment(time) = time.getutc.floor(3).xmlschema(3)
end
