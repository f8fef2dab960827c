# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "hikyaku/codec"
require "delegate"
require "set"
require "tempfile"

# What becomes of objects that are neither text nor numbers, arrays or hashes: the same in both formats.
class CodecPlainTest < Minitest::Test
  Codec = Hikyaku::Codec
  Point = Struct.new(:x, :y)

  class Account
    def initialize(json) = @json = json

    def as_json(*) = @json
  end

  class Names < Array
    def as_json(*) = ["names"] + to_a
  end

  class Label < String
    def as_json = "<#{self}>"
  end

  class Secretive < Hash
    def as_json = {"kept" => true}
  end

  class Itself < Array
    def as_json = self
  end

  class Pairs
    include Enumerable

    def each
      yield 1
      yield :two
    end
  end

  ALREADY = {a: {b: {"c" => [1.5, nil, true, 2**64 - 1]}}}.freeze
  BECOME = {
    [Point.new(1, :a)] => [{"x" => 1, "y" => "a"}],
    [Set[1, Set[2]]] => [[1, [2]]],
    [Pairs.new] => [[1, "two"]],
    [Itself[1, :b]] => [[1, "b"]],
    [1..2, "a"..] => ["1..2", "a.."],
    [1/3r, Complex(1, 2)] => ["1/3", "1+2i"],
    [BigDecimal("1e2"), BigDecimal("0.10")] => ["100.0", "0.1"],
    [Date.new(2024, 2, 29)] => ["2024-02-29"],
    [Account.new({name: :ada, id: 2})] => [{"name" => "ada", "id" => 2}],
    [Account.new(Account.new(nil))] => [nil],
    [Names.new(["a"]), Label.new("b"), Secretive[1, 2]] => [["names", "a"], "<b>", {"kept" => true}],
    {nil => 1, true => 2, 3 => 3, 1.5 => 4, :five => 5} => {"" => 1, "true" => 2, "3" => 3, "1.5" => 4, "five" => 5},
    {:a => 1, "b" => 2, "a" => 3} => {"a" => 3, "b" => 2},
    {BigDecimal(1) => 1, Date.new(2024) => 2} => {"0.1e1" => 1, "2024-01-01" => 2},
    {1 => :first, "1" => :last} => {"1" => "last"},
    ["\xE9".b.force_encoding("ISO-8859-1"), "é".encode("UTF-16BE"), "a".b.encode("US-ASCII")] => ["é", "é", "a"],
    {"é".encode("ISO-8859-1") => 1, "k".b => 2} => {"é" => 1, "k" => 2},
    ALREADY => {"a" => {"b" => {"c" => [1.5, nil, true, 2**64 - 1]}}}
  }.freeze

  test "an object becomes what its as_json says, in both formats" do
    BECOME.each do |object, plain|
      each_way { |name| assert_equal plain, Codec[name].load(Codec[name].dump(object)), "#{name}: #{object.inspect}" }
    end
  end

  class Endless
    def as_json = Endless.new
  end

  class Branching
    def as_json = {again: [Branching.new]}
  end

  def self.loop_of(container) = container.tap { |one| one.is_a?(Hash) ? one[:self] = one : one << one }

  REFUSED = {
    [[0.0 / 0]] => "at $[0][0]: it is NaN, which is no number in JSON: send nil, or text",
    {a: {"b" => -1.0 / 0}} => "at $.a.b: it is -Infinity, which is no number in JSON: send nil, or text",
    [BigDecimal("NaN")] => "at $[0]: it is NaN, which",
    {user: ["", "\xff"]} => "at $.user[1]: it is said to be UTF-8, and is not",
    ["\xff".b.force_encoding("US-ASCII")] => "at $[0]: it is said to be US-ASCII, and is not",
    ["\x81".b.force_encoding("Windows-1252")] => "at $[0]: its text in Windows-1252 cannot be put in UTF-8",
    {"\xff" => 1} => "at $.?: it is said to be UTF-8, and is not",
    {"\xff".b => 1} => "at $.?: its key is bytes and no text",
    [Object.new] => "at $[0]: an object of Object has no representation: give it a method as_json",
    {deep: [{er: proc {}}]} => "at $.deep[0].er: an object of Proc has no representation",
    loop_of([]) => "at $[0][0][0][0][0][0] and 94 levels below: it is nested deeper than 100 levels, or contains itself",
    loop_of({}) => "at $.self.self.self.self.self.self and 94 levels below: it is nested deeper than 100 levels, or contains itself",
    [Endless.new] => "it is nested deeper than 100 levels, or contains itself",
    [Branching.new] => "it is nested deeper than 100 levels, or contains itself"
  }.freeze

  test "what cannot be represented is refused in both formats in the same words, which say what and where" do
    REFUSED.each do |object, words|
      each_way do |name|
        error = assert_raises(Codec::Unrepresentable, "#{name}: #{words}") { Codec[name].dump(object) }
        assert_includes error.message, words, name
        assert_operator error.message.bytesize, :<, 400
      end
    end
  end

  test "what is refused is not quoted: it may be somebody's secret" do
    each_way { |name| refute_includes assert_raises(Codec::Unrepresentable) { Codec[name].dump(["tiger\xff"]) }.message, "tiger" }
  end

  test "bytes are refused in JSON, and said to be bytes" do
    assert_match(/at \$\[0\]: it is bytes \(ASCII-8BIT\), which JSON cannot have/, assert_raises(Codec::Unrepresentable) { Codec[:json].dump(["\xff".b]) }.message)
    assert_equal "[\"a\"]", Codec[:json].dump(["a".b])
  end

  test "a hundred levels are written, one more is not" do
    [:nest_array, :nest_hash].each do |nest|
      each_way do |name|
        assert_equal send(nest, 100), Codec[name].load(Codec[name].dump(send(nest, 100)))
        assert_raises(Codec::Unrepresentable) { Codec[name].dump(send(nest, 101)) }
        assert_raises(Codec::Unrepresentable) { Codec[name].dump(send(nest, 5_000)) }
        assert_equal [1], Codec[name].load(Codec[name].dump([1])), "after that"
      end
    end
  end

  class Asked
    def as_json(options) = {"given" => options.delete(:given), "inner" => Optional.new}
  end

  class Optional
    def as_json(options = :nothing) = options
  end

  class Oracle
    def method_missing(name, *) = name.end_with?("?") || super

    def respond_to_missing?(name, _) = name.end_with?("?")

    def as_json(*) = "an answer"
  end

  test "each as_json is given a copy of the options that stand beside an object, and what it returns is none of it" do
    given = Codec::Plain::Given.new([Asked.new, {a: [Asked.new]}, Optional.new], {given: 1})
    expected = {"given" => 1, "inner" => "nothing"}
    each_way { |format| assert_equal [expected, {"a" => [expected]}, {"given" => 1}], Codec[format].load(Codec[format].dump(given)) }
    assert_equal({given: 1}, given.options)
    each_way { |format| assert_equal ["nothing"], Codec[format].load(Codec[format].dump([Optional.new])) }
    error = assert_raises(Codec::Unrepresentable) { Codec[:msgpack].dump(Codec::Plain::Given.new({a: proc {}}, {})) }
    assert_match(/at \$\.a: /, error.message)
  end

  test "what answers to any question is no moment" do
    each_way { |format| assert_equal ["an answer"], Codec[format].load(Codec[format].dump([Oracle.new])) }
  end

  test "the object itself is not changed" do
    object = {:a => ["x".b, 1r], "b" => Label.new("c")}
    before = Marshal.dump(object)
    each_way { |name| Codec[name].dump(object) }
    assert_equal before, Marshal.dump(object)
    each_way { |name| Codec[name].dump({a: ["x", :b].freeze}.freeze) }
  end

  test "moments are text to the millisecond in JSON, as as_json has them" do
    moments = [Time.at(0, 999_999_999, :nsec, in: "UTC"), Time.at(0, in: "+02:00"), DateTime.new(2024, 1, 2, 3, 4, 5.678r, "-01:00")]
    assert_equal ["1970-01-01T00:00:00.999Z", "1970-01-01T02:00:00.000+02:00", "2024-01-02T03:04:05.678-01:00"], Codec[:json].load(Codec[:json].dump(moments))
    packed = Codec[:msgpack].load(Codec[:msgpack].dump(moments))
    assert_equal moments.map(&:to_time), packed
    assert_equal 999_999_999, packed.first.nsec
  end

  test "Ruby refuses what the extension in C does not find plain, and finds it where that is not there" do
    skip "the extension in C is not compiled" unless Codec::Plain.native_there?
    odd = [*(BECOME.keys - [ALREADY]), *REFUSED.keys, nest_array(101), ["\xff".b], [2**64], [-2**63 - 1], ["\xff".b.to_sym], {"a" => 1, :a => 2},
      [{}.compare_by_identity.tap { |hash| 2.times { hash[+"name"] = 1 } }], [{}.compare_by_identity.tap { |hash| 2.times { hash[(+"name").freeze] = 1 } }], [Names.new], [Secretive["a", 1]], [Class.new(String).new("a")]]
    odd.each { |object| refute Codec::Plain.native?(object, 100, true), object.class.name }
    plain = [nil, 2**64 - 1, -2**63, 2**63, -2**62, 1.5, "ü", :ü, [], {}, {a: 1, b: {"c" => 1, "d" => {e: 2}}},
      Time.at(0), nest_array(100), nest_hash(100), [[]] * 200, [{}] * 200]
    plain.each { |object| assert Codec::Plain.native?(object, 100, true), object.inspect[0, 60] }
  end

  test "of a file or a socket the name is sent, as with Active Support, and never what can be read from it" do
    Tempfile.create do |open|
      open.write("a secret\n" * 3)
      open.rewind
      [open, $stdin, ARGF, Tempfile.new, Class.new(SimpleDelegator).new(open)].each do |readable|
        each_way { |format| assert_equal [readable.to_s], Codec[format].load(Codec[format].dump([readable])) }
      end
      assert_equal [0, 27], [open.pos, open.size]
    end
  end

  test "a hash that has a key twice, since it compares objects and not text, is refused, and one that has not is written" do
    twice = {}.compare_by_identity
    ["name", (+"name").freeze, +"id"].each_with_index { |key, index| twice[key] = index }
    once = {}.compare_by_identity
    [+"name", (+"id").freeze].each_with_index { |key, index| once[key] = index }
    asked = 0
    each_way do |format|
      # What json writes in one go it looks at itself, and does not see it.
      if format == :msgpack || Codec::JSON::Engine.send(:coder).nil?
        error = assert_raises(Codec::Unrepresentable) { Codec[format].dump({a: [twice]}) }
        assert_match(/\$\.a\[0\]\.name: .*the key for the second time.*compare_by_identity/, error.message)
        asked += 1
      end
      assert_equal({"a" => [{"name" => 0, "id" => 1}]}, Codec[format].load(Codec[format].dump({a: [once]})))
    end
    assert_operator asked, :>=, 3
    assert_equal [3, 2], [twice.size, once.size], "they are left as they are"
  end

  private

  # JSON, with json in one go and the long way; MessagePack with a look in C and without.
  def each_way
    yield :json
    Codec::JSON::Engine.stub(:coder, nil) { yield :json }
    yield :msgpack
    Codec::Plain.stub(:native_there?, false) { yield :msgpack }
  end

  def nest_array(levels) = (levels - 1).times.inject([]) { |inner, _| [inner] }

  def nest_hash(levels) = (levels - 1).times.inject({}) { |inner, _| {"a" => inner} }
end
