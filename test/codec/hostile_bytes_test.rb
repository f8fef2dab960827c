# frozen_string_literal: true

require "test_helper"
require "hikyaku/codec"
require "msgpack"
require "support/generated_objects"
require "support/mutated_bytes"

# Bytes that were something once, and have been changed at random: either they are read, and then exactly, or they are Malformed. Nothing else is raised,
# and no process dies.
class CodecHostileBytesTest < Minitest::Test
  Codec = Hikyaku::Codec
  SEED = Integer(ENV.fetch("HIKYAKU_TEST_SEED", "8"))
  ROUNDS = 3_000

  %i[msgpack json].each do |name|
    test "#{name} that was changed is read exactly, or refused" do
      outcomes = mutations(name).map { |bytes| outcome(name, bytes) }.tally
      assert_operator outcomes[:read], :>, ROUNDS / 50, outcomes.inspect
      assert_operator outcomes[:refused], :>, ROUNDS / 5, outcomes.inspect
    end

    test "#{name} that is cut anywhere is refused" do
      bytes = Codec[name].dump([{"a" => ["ü", 1.5, 70_000, nil, true]}, {"time" => Time.at(1, 5, :nsec), "list" => [1] * 20}])
      (0...bytes.bytesize).each { |size| assert_raises(Codec::Malformed, "#{size} bytes") { Codec[name].load(bytes.byteslice(0, size)) } }
    end
  end

  test "random bytes are read exactly, or refused" do
    random = Random.new(SEED)
    ROUNDS.times do
      bytes = random.bytes(random.rand(1..24))
      %i[msgpack json].each { |name| outcome(name, bytes) }
    end
  end

  private

  def outcome(name, bytes)
    object = Codec[name].load(bytes.dup.freeze)
    exact(name, object, bytes)
    :read
  rescue Codec::Malformed => error
    assert_operator error.message.bytesize, :<, 200
    :refused
  end

  # The gem, which believes more, reads the same; and what was read can be written and read again.
  def exact(name, object, bytes)
    again = Codec[name].load(Codec[name].dump(object))
    assert_equal [object], [again], bytes.inspect
    expected = (name == :msgpack) ? reference.load(bytes) : ::JSON.parse(bytes.dup.force_encoding(Encoding::UTF_8))
    assert_equal [expected], [object], bytes.inspect
  end

  def reference
    @reference ||= MessagePack::Factory.new.tap { |factory| factory.register_type(-1, Time, unpacker: MessagePack::Time::Unpacker, packer: nil) }
  end

  def mutations(name)
    random = Random.new(SEED)
    generator = GeneratedObjects.new(random)
    seeds = Array.new(60) { Codec[name].dump([generator.next(2)]) }
    mutated = MutatedBytes.new(random, seeds, name)
    Array.new(ROUNDS) { mutated.next }
  end
end
