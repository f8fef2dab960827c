# frozen_string_literal: true

require "test_helper"
require "json"
require "hikyaku/hub/matcher"
require "hikyaku/hub/topics"
require "support/engine_dump"

# Programs and matchers decide in the engine in C as they do in Ruby, in as many steps.
class MatcherDifferentialTest < Minitest::Test
  Matcher = Hikyaku::Hub::Matcher
  TopicProgram = Hikyaku::Hub::TopicProgram
  Expression = TopicProgram::Expression
  HUB = "https://hub.example.com/.well-known/mercure"
  VECTORS = File.expand_path("../vectors", __dir__)
  LONE_SURROGATE = /\\u[dD][89abAB]\h\h(?!\\u[dD][c-fC-F]\h\h)|(?<!\\u[dD][89abAB]\h\h)\\u[dD][c-fC-F]\h\h/

  def setup
    @engine = EngineDump.new("matcher")
    @topics = Hikyaku::Hub::Topics.new(hub_url: HUB, max_bytes: 1 << 30)
  end

  test "programs of the vectors run as they say, with their shapes and without" do
    runs = JSON.parse(File.read(File.join(VECTORS, "topic_programs.json"))).fetch("programs").flat_map do |entry|
      entry["texts"].map { |text| [[entry["bytes"]].pack("H*"), text["text"], text["matches"], text["steps"]] }
    end
    assert_operator runs.size, :>, 70
    assert_runs(runs)
  end

  test "random programs run as in Ruby, step by step" do
    random = Random.new(42)
    runs = 400.times.flat_map do
      program = TopicProgram.new(random_expression(random, 4))
      Array.new(20) { Array.new(random.rand(9)) { "abcd"[random.rand(4)] }.join }.map { |text| [program.bytes, text, *program.run(text)] }
    end
    assert_operator runs.count { |run| run[2] }, :>, 500
    assert_runs(runs)
  end

  test "a run is given up at the same step as in Ruby" do
    wide = TopicProgram.new(Expression.sequence([Expression.repeat(Expression.bytes("a"), 0, 1)] * 600 + [Expression.bytes("b")]))
    narrow = TopicProgram.new(Expression.repeat(Expression.bytes("a"), 0, nil))
    letters = [*"A".."Z", *"a".."d"]
    letter = TopicProgram.new(Expression.repeat([:either, letters.map { |each| Expression.bytes(each) }], 0, nil))
    runs = [*0..40, 60, 100, 500, 599, 600, 601, 2_000, 10_000, 16_383, 16_384, 16_385, 21_844, 21_845, 21_846, 40_000, 70_000].flat_map do |size|
      [[wide, "#{"a" * size}b"], [narrow, "a" * size], [letter, letters.cycle.first(size).join]].map { |program, text| [program.bytes, text, *program.run(text)] }
    end
    assert_operator runs.count { |run| run[3] > TopicProgram.allowed_steps(run[1].bytesize) }, :>, 20
    assert_runs(runs)
  end

  test "the largest programs run, and larger ones are refused" do
    largest = TopicProgram.new(Expression.bytes("a" * 16_383)).bytes
    assert_runs([[largest, "a" * 16_383, *TopicProgram::Runner.new(largest).run("a" * 16_383)]])
    too_large = [1, 0, 16_385].pack("CCn") + [1, 97, 0].pack("CCn") * 16_384 + [0, 0, 0].pack("CCn")
    assert_equal ["invalid"], @engine.ask(["P", too_large, "a"])
  end

  test "URL patterns of the public cases decide about all their URLs as in Ruby" do
    cases = JSON.parse(File.read(File.join(VECTORS, "urlpattern/urlpatterntestdata.json")).gsub(LONE_SURROGATE, '\\uFFFD')).grep(Hash)
    patterns = cases.filter_map { |entry| compile(entry["pattern"]) }.uniq(&:program)
    topics = cases.filter_map { |entry| entry["inputs"]&.then { |input, base| input.is_a?(String) && Hikyaku::URL.parse(input, base: base) } }.uniq(&:components).map { |url| [written(url), url] }
    assert_operator patterns.size, :>, 120
    verdicts = patterns.sum do |pattern|
      assert_verdicts(url_fields("p", pattern), topics) { |_, url| pattern.match?(url) }
    end
    assert_operator verdicts, :>, 500
  end

  test "URI Templates of the public cases decide about all their expansions as in Ruby" do
    cases = Dir[File.join(VECTORS, "uritemplate/{*-tests,spec-examples*}.json")].flat_map { |file| JSON.parse(File.read(file)).values.flat_map { |section| section["testcases"] } }
    templates = cases.map(&:first).uniq.filter_map { |template| Hikyaku::Hub::UriTemplate.compile(template)&.then { |compiled| [template, compiled] } }
    texts = (cases.flat_map { |_, expansions| Array(expansions || nil) } + templates.map(&:first)).uniq.grep(String).map { |text| [text, nil] }
    assert_operator templates.size, :>, 100
    verdicts = templates.sum do |template, compiled|
      fields = ["M", "uri_template", template, "text", compiled.program.bytes, "", "", compiled.prefix]
      assert_verdicts(fields, texts) { |text, _| text == template || compiled.match?(text) }
    end
    assert_operator verdicts, :>, 150
  end

  MATCHERS = [["exact", "*"], ["urlpattern", "*"], ["uri_template", "*"], ["exact", "https://example.com/a"], ["uri_template", "https://example.com/a"], ["urlpattern", "https://example.com/a"], ["urlpattern", "https://example.com/:x"],
    ["urlpattern", "https://example.com/a/:x"], ["urlpattern", "/a"], ["urlpattern", "/:x"], ["urlpattern", "*://*/a"], ["urlpattern", "https://*.com/a"], ["urlpattern", "https://:sub.example.com/*"], ["uri_template", "https://example.com/{x}"],
    ["uri_template", "{+x}"], ["uri_template", "/{x}"], ["exact", "/a"], ["exact", ""], ["exact", "木"], ["urlpattern", "https://example.com/*"], ["urlpattern", "/a?:x"], ["urlpattern", "/a#*b"], ["urlpattern", "https://u\\:p@example.com/*"],
    ["urlpattern", "/:a/:b-:c"], ["urlpattern", "urn\\:*"], ["urlpattern", "foo://h/:a"], ["uri_template", "/é{x}"]].freeze
  TOPICS = ["https://example.com/a", "https://example.com/a/b", "https://example.com/", "/a", "a", "/b", "", "*", "木", "https://hub.example.com/a", "HTTPS://EXAMPLE.com/a", "http://[", "urn:x", "https://other.com/a", "https://example.com/a?q", "/a?q", "/a?",
    "/a#b", "/a#xb", "https://example.com:443/a", "https://example.com:8443/a", "https://u:p@example.com/a", "https://a.example.com/x/y", "/a/b-c", "/a/b-c-d", "foo://h/1", "/éx", "/%C3%A9x", "https://example.com/{x}", "/{x}"].freeze

  test "matchers of every type decide as in Ruby, also about topics that are no URL" do
    topics = TOPICS.map { |topic| [topic, @topics[topic].url] }
    MATCHERS.each do |type, pattern|
      matcher = Matcher.build(type: type, pattern: pattern, base: HUB)
      verdicts = assert_verdicts(fields_of(matcher), topics) { |value, _| matcher.match?(@topics[value]) }
      assert_operator verdicts, :>, 0, [type, pattern].inspect
    end
  end

  PIECES = ["/", "/a", "/b", "/:x", "/*", "a", "b", "-", ":y", "*", "{/:z}?", "(a|b)", "(\\d+)", ".", "(a+)+", "(a*)*b"].freeze

  test "random URL patterns decide about random topics as in Ruby" do
    random = Random.new(9)
    verdicts = 300.times.sum do
      pattern = "/" + Array.new(random.rand(5)) { PIECES[random.rand(PIECES.size)] }.join
      begin
        matcher = Matcher.build(type: "urlpattern", pattern: pattern, base: HUB)
      rescue Hikyaku::InvalidMatcher
        next 0
      end
      topics = Array.new(30) { "/" + Array.new(random.rand(6)) { ["/", "a", "b", "1", "-", ".", "aa"][random.rand(7)] }.join }.map { |topic| [topic, @topics[topic].url] }
      assert_verdicts(fields_of(matcher), topics) { |value, _| matcher.match?(@topics[value]) }
    end
    assert_operator verdicts, :>, 400
  end

  private

  # Program, text, verdict, steps.
  def assert_runs(runs)
    answers = @engine.ask(runs.flat_map { |run| ["P", *run.first(2)] })
    assert_equal runs.size, answers.size
    runs.zip(answers) do |(program, text, matches, steps), answer|
      verdict = matches ? 1 : 0
      # What has a shape is exempt from counting, so it goes on where the program would be given up.
      given_up = steps > TopicProgram.allowed_steps(text.bytesize)
      expected = if given_up
        /\A0 #{steps} /
      else
        /\A#{verdict} #{counted?(program) ? steps : 0} #{verdict}\z/
      end
      assert_match expected, answer, [program.unpack1("H*")[0, 400], text[0, 60]].inspect
    end
  end

  # Even without memory for literals, "anything" is recognised.
  def counted?(program) = program != Expression::ANYTHING.then { |anything| TopicProgram.new(anything).bytes }

  # How many topics it selects.
  def assert_verdicts(fields, topics)
    asked = topics.flat_map { |value, url| ["T", value, url ? "url" : "", *(url ? [*url.components, url.origin] : [""] * 9)] }
    status, *answers = @engine.ask(fields + asked)
    assert_equal "HK_OK", status
    assert_equal topics.size, answers.size
    topics.zip(answers).count do |topic, answer|
      expected = yield(*topic)
      assert_equal expected ? "1" : "0", answer, [fields[1], fields[2], topic.first].inspect
      expected
    end
  end

  def fields_of(matcher)
    case matcher.anchor
    in [:all] then ["M", matcher.type, matcher.pattern, "all", "", "", "", ""]
    in [:exact, string] then ["M", matcher.type, matcher.pattern, "exact", "", "", "", ""]
    in [:url, _, _] then url_fields(matcher.pattern, Hikyaku::Hub::UrlPattern.compile(matcher.pattern, base: HUB))
    in [:text, prefix] then ["M", matcher.type, matcher.pattern, "text", Hikyaku::Hub::UriTemplate.compile(matcher.pattern).program.bytes, "", "", prefix]
    end
  end

  def url_fields(pattern, compiled)
    ["M", "urlpattern", pattern, "url", compiled.program, compiled.origin ? "origin" : "", compiled.origin.to_s, compiled.leading_path.to_s]
  end

  def compile(pattern)
    input, base, options = pattern
    return if options || base.is_a?(Hash)

    Hikyaku::Hub::UrlPattern.compile(input, base: base)
  rescue Hikyaku::InvalidMatcher, NoMethodError, TypeError
    nil
  end

  def written(url) = "#{url.protocol}:#{url.origin}#{url.pathname}?#{url.search}##{url.hash}"

  def random_expression(random, depth)
    return [Expression.bytes("abcd"[random.rand(4)]), Expression.bytes("ab"), Expression.set("ab"), Expression.set(98..100), Expression::NOTHING, Expression::ANYTHING, [:start], [:finish]][random.rand(8)] if depth.zero?

    nested = -> { random_expression(random, depth - 1) }
    case random.rand(6)
    when 0, 1 then Expression.sequence([nested.call, nested.call])
    when 2 then [:either, [nested.call, nested.call]]
    when 3 then Expression.repeat(nested.call, *[[0, 1], [0, nil], [1, nil], [2, 3], [2, nil], [0, 2]][random.rand(6)])
    else random_expression(random, 0)
    end
  end
end
