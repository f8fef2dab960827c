# frozen_string_literal: true

require "json"
require_relative "../test_helper"
require "hikyaku/hub/topic_program"
require "hikyaku/hub/uri_template"
require "hikyaku/hub/url_pattern"

class TopicProgramTest < Minitest::Test
  TopicProgram = Hikyaku::Hub::TopicProgram
  Expression = TopicProgram::Expression
  VECTORS = File.expand_path("../vectors/topic_programs.json", __dir__)

  test "patterns compile to the bytes of the vectors, and the bytes run as they say" do
    entries = JSON.parse(File.read(VECTORS)).fetch("programs")
    assert_operator entries.size, :>=, 20
    entries.each do |entry|
      bytes = [entry["bytes"]].pack("H*")
      assert_equal bytes, compile(entry).bytes, entry["pattern"]
      runner = TopicProgram::Runner.new(bytes)
      entry["texts"].each { |text| assert_equal text.values_at("matches", "steps"), runner.run(text["text"]), [entry["pattern"], text["text"]].inspect }
    end
  end

  test "bytes of another version are not run" do
    assert_raises(ArgumentError) { TopicProgram::Runner.new("\x02\x00\x00\x01\x00\x00\x00\x00".b) }
  end

  test "random expressions decide as Ruby's regular expressions do, by whatever way" do
    random = Random.new(42)
    deterministic = 0
    300.times do
      expression = random_expression(random, 4)
      program = TopicProgram.new(expression)
      deterministic += 1 if program.backtracks_little?
      regexp = /\A(?:#{Expression.source(expression)})\z/n
      assert_equal Expression.size(expression) + 1, (program.bytes.bytesize - 4 - 32 * program.bytes.getbyte(1)) / 4
      20.times do
        text = Array.new(random.rand(7)) { "abcd"[random.rand(4)] }.join
        expected = regexp.match?(text)
        assert_equal expected, program.run(text).first, [expression, text].inspect
        assert_equal expected, program.match?(text), [expression, text].inspect
      end
    end
    assert_operator deterministic, :>, 50
    assert_operator deterministic, :<, 280
  end

  test "bytes beyond ASCII are matched as bytes" do
    program = TopicProgram.new(Expression.sequence([Expression.bytes("é"), Expression::ANYTHING, Expression.bytes("€")]))
    assert program.match?("é日本€")
    refute program.match?("è€")
    segment = TopicProgram.new(Expression.sequence([Expression.bytes("/é/"), Expression.repeat([:set, Expression::EVERY_BYTE ^ (1 << 47)], 1, nil)]))
    assert segment.match?("/é/日本")
    refute segment.match?("/é/日/本")
  end

  # (a?){n}a{n}, (a*)*b and the like take exponential time, or worse, where they are tried one way after the other.
  MALICIOUS = ["/(#{"a?" * 50}#{"a" * 50})", "/((?:a*)*b)", "/((?:a|a)*b)", "/((?:a|aa)*b)", "/((?:a+)+b)", "/([ab]*a[ab]{40}c)", "/*a*a*a*a*a*a*b", "/:a-:b-:c-:d-:e!", "/(.*)(.*)(.*)(.*)(.*)!",
    "/((?:(?:a{0,5}){0,5}){0,5}b)", "/((?:a*b?)*c)"].freeze

  test "malicious patterns take steps in proportion to the text (draft-08 URL-Pattern Denial of Service)" do
    MALICIOUS.each do |pattern|
      program = Hikyaku::Hub::UrlPattern.compile({pathname: pattern}).components[:pathname].program
      instructions = program.bytes.unpack1("@2n")
      [200, 400, 800].each do |size|
        text = "/#{"a-" * (size / 4)}#{"a" * (size / 2)}"
        matched, steps = program.run(text)
        refute matched, pattern
        assert_operator steps, :<=, instructions * (text.size + 1), pattern
        assert_operator steps, :<=, TopicProgram.allowed_steps(text.size) + instructions, pattern
      end
    end
  end

  test "no run takes more steps than its program's cost says" do
    random = Random.new(7)
    widths = []
    500.times do
      expression = Expression.sequence(Array.new(1 + random.rand(4)) { random_expression(random, 3) })
      program = TopicProgram.new(expression)
      widths << (width = TopicProgram::Cost.width(expression))
      20.times do
        text = Array.new(random.rand(40)) { "abcd"[random.rand(4)] }.join
        _, steps = program.run(text)
        assert_operator steps, :<=, width * (text.size + 1), [expression, text].inspect unless program.cost.zero?
      end
    end
    assert_operator widths.min, :<, 4
    assert_operator widths.max, :>, 32
  end

  test "what one pattern costs: nothing where texts are compared, little where the next byte decides, at most what ends a run" do
    {"/books/:id" => 0, "/books/*" => 0, "/books" => 0, "*" => 0, "/books/:id/pages" => 5, "/:a/:b/:c/:d" => 5, "/:id(\\d+)" => 4, "/books/*/pages" => 10,
     "/((?:a*)*b)" => 5, "/*a*a*a*b" => 17, "/*a*a*a*a*a*a*a*a*a*b" => 32, "/([ab]*a[ab]{40}c)" => 32}.each do |pattern, cost|
      assert_equal cost, Hikyaku::Hub::UrlPattern.compile({pathname: pattern}).components[:pathname].program.cost, pattern
    end
    assert_equal 64, Hikyaku::Hub::UrlPattern.compile({pathname: "/((?:a?){64}b)", search: "((?:a?){64}b)"}).cost, "the components are matched one after the other"
  end

  test "only what is deterministic goes to Ruby's own engine, but for fixed text behind it" do
    (MALICIOUS - ["/((?:a*)*b)", "/((?:a+)+b)"]).each { |pattern| refute_predicate Hikyaku::Hub::UrlPattern.compile({pathname: pattern}).components[:pathname].program, :backtracks_little?, pattern }
    {"/:a/:b" => true, "/:a(\\d+)/x" => true, "/x(a|b)*" => true, "/((?:a*)*b)" => true, "/a/:b*" => true, "/:a.json" => true, "/:a(\\d+).json" => true, "/:a.:b" => false, "/*a/:b.c" => false, "/:a/:b?/c" => false}.each do |pattern, expected|
      assert_equal expected, Hikyaku::Hub::UrlPattern.compile({pathname: pattern}).components[:pathname].program.backtracks_little?, pattern
    end
  end

  test "a run is given up after so many steps, and the text counts as not matching (draft-08 URL Pattern)" do
    text = "a" * 2000
    narrow = TopicProgram.new(Expression.repeat(Expression.bytes("a"), 0, nil))
    assert_equal [true, 4 * 2000 + 3], narrow.run(text)
    wide = TopicProgram.new(Expression.sequence([Expression.repeat(Expression.bytes("a"), 0, 1)] * 2000 + [Expression.bytes("b")]))
    matched, steps = wide.run("a" * 1900 + "b")
    refute matched
    assert_operator steps, :>, TopicProgram.allowed_steps(1901)
    assert_operator steps, :<=, TopicProgram.allowed_steps(1901) + 4001
    refute wide.match?("a" * 1900 + "b")
    assert_equal [1024, 1056, 65_536, 65_536], [0, 1, 2016, 100_000].map { |size| TopicProgram.allowed_steps(size) }
  end

  test "a program that Ruby's engine runs is given up where it would run out of steps by itself" do
    letters = [*"A".."Z", *"a".."d"]
    program = TopicProgram.new(Expression.repeat([:either, letters.map { |letter| Expression.bytes(letter) }], 0, nil))
    assert_predicate program, :backtracks_little?
    [10, 100, 3000].each { |size| assert_equal program.run(letters.cycle.first(size).join).first, program.match?(letters.cycle.first(size).join), size }
    assert program.match?(letters.join)
    refute program.match?("d" * 3000)
  end

  test "programs that are too large are refused before they are made" do
    [Expression.bytes("a" * 16_384), Expression.repeat(Expression.repeat(Expression.bytes("ab"), 0, 1_000_000), 5, 1_000_000)].each do |expression|
      assert_raises(Hikyaku::InvalidMatcher) { TopicProgram.new(expression) }
    end
    assert TopicProgram.new(Expression.bytes("a" * 16_383))
    assert_raises(Hikyaku::InvalidMatcher) { TopicProgram.new([:all, (1..256).map { |mask| [:set, mask] }]) }
  end

  private

  def compile(entry)
    return Hikyaku::Hub::UriTemplate.compile(entry["pattern"]).program if entry["kind"] == "uri_template"
    Hikyaku::Hub::UrlPattern.compile({pathname: entry["pattern"]}).components[:pathname].program
  end

  def random_expression(random, depth)
    return [Expression.bytes("abcd"[random.rand(4)]), Expression.bytes("ab"), Expression.set("ab"), Expression.set(98..100), Expression::NOTHING][random.rand(5)] if depth.zero?
    nested = -> { random_expression(random, depth - 1) }
    case random.rand(6)
    when 0, 1 then Expression.sequence([nested.call, nested.call])
    when 2 then [:either, [nested.call, nested.call]]
    when 3 then Expression.repeat(nested.call, *[[0, 1], [0, nil], [1, nil], [2, 3], [2, nil], [0, 2]][random.rand(6)])
    else random_expression(random, 0)
    end
  end
end
