# frozen_string_literal: true

require "test_helper"
require "hikyaku/codec"
require "msgpack"
require "support/generated_objects"

# Bytes that were something once, and have been changed at random: either they are read, and then exactly, or they are Malformed. Nothing else is raised,
# and no process dies.
class CodecHostileBytesTest < Minitest::Test
  Codec = Hikyaku::Codec
  SEED = Integer(ENV.fetch("HIKYAKU_TEST_SEED", "8"))
  ROUNDS = 3_000
  # First bytes and parts of text that mean something.
  TOKENS = {
    msgpack: ["\xc1", "\xc7", "\xc9\xff\xff\xff\xff", "\xd4", "\xd7\xff", "\xd9", "\xdb\xff\xff\xff\xff", "\xdc\xff\xff", "\xdd\xff\xff\xff\xff", "\xdf\xff\xff\xff\xff",
      "\x91" * 60, "\x81\xa1a" * 60, "\xcb\x7f\xf8", "\xed\xa0\x80", "\xff", "\x80", "\xa1a"],
    json: ["[", "]", "{", "}", "\"", "\\", "\\u", "\\ud800", ",", ":", "1e999", "9" * 400, "[" * 60, "null", "\xff", "\xed\xa0\x80", "-", "\0"]
  }.transform_values { |tokens| tokens.map(&:b) }.freeze

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
    Array.new(ROUNDS) { mutate(seeds[random.rand(seeds.size)].dup, random, TOKENS.fetch(name)) }
  end

  def mutate(bytes, random, tokens)
    random.rand(1..3).times do
      at = random.rand(bytes.bytesize + 1)
      case random.rand(4)
      when 0 then bytes.setbyte(at, random.rand(256)) if at < bytes.bytesize
      when 1 then bytes[at, 0] = tokens[random.rand(tokens.size)]
      when 2 then bytes[at, random.rand(4)] = ""
      else bytes[at, 8] = bytes[random.rand(bytes.bytesize + 1), 8] || ""
      end
    end
    bytes
  end
end
