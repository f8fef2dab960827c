# frozen_string_literal: true

require "json"
require_relative "../test_helper"
require "hikyaku/hub/url_pattern"

class UrlPatternTest < Minitest::Test
  UrlPattern = Hikyaku::Hub::UrlPattern
  URL = Hikyaku::URL
  VECTORS = File.expand_path("../vectors/urlpattern", __dir__)
  # Half a surrogate pair, which JavaScript reads as U+FFFD where it wants a URL.
  LONE_SURROGATE = /\\u[dD][89abAB]\h\h(?!\\u[dD][c-fC-F]\h\h)|(?<!\\u[dD][89abAB]\h\h)\\u[dD][c-fC-F]\h\h/

  def self.cases
    @cases ||= JSON.parse(File.read(File.join(VECTORS, "urlpatterntestdata.json")).gsub(LONE_SURROGATE, '\\uFFFD')).grep(Hash)
  end

  def self.skipped = @skipped ||= JSON.parse(File.read(File.join(VECTORS, "exceptions.json")))["skipped"].map { |entry| entry["pattern"] }

  test "all public cases of construction and matching hold, but for those that are listed with a reason (draft-08 URL Pattern)" do
    ran = self.class.cases.reject { |entry| self.class.skipped.include?(entry["pattern"]) }
    assert_equal self.class.skipped.size, self.class.cases.size - ran.size
    ran.each { |entry| assert_equal expected(entry), outcome(entry), JSON.generate(entry.slice("pattern", "inputs")) }
  end

  test "every component of every public case is decided as its program decides (draft-08 URL-Pattern Denial of Service)" do
    compared = 0
    patterns = self.class.cases.filter_map { |entry| compiled(entry) }
    urls = self.class.cases.filter_map { |entry| entry["inputs"]&.then { |input, base| input.is_a?(String) && URL.parse(input, base: base) } }.uniq(&:components)
    patterns.each do |pattern|
      pattern.components.each do |name, component|
        program = component.program
        urls.each do |url|
          value = url.public_send(name)
          compared += 1
          assert_equal program.run(value).first, component.match?(value), [name, value].inspect unless component.any?
        end
      end
    end
    assert_operator compared, :>, 10_000
  end

  SHAPES = ["/", "/a", "/a/*", "/a/:id", "/:id", "*", "/*a*", "*a", "/a*b*/c", "/:a/:b", "/:a-:b", "/:a?", "/:a*/b", "/:a+", "/{a/:b}?", "/(a|b|/)*", "/:a(\\w+)", "/a{b}*{c}+",
    "/a:b.c", "/(a+)(a+)b", "/([^a]*)a", "/(a|b)?*", "/:a{/:b}*c", "/*ab*b", "*a*a", "/*a/*a/"].freeze

  test "the short ways for common shapes decide as the program does" do
    random = Random.new(7)
    components = SHAPES.map { |shape| UrlPattern.compile({pathname: shape}).components[:pathname] }
    yes = 0
    400.times do
      text = "/" * random.rand(2) + Array.new(random.rand(9)) { "ab/c-."[random.rand(6)] }.join
      components.each_with_index do |component, index|
        expected = component.program.run(text).first
        yes += 1 if expected
        assert_equal expected, component.match?(text), [SHAPES[index], text].inspect
      end
    end
    assert_operator yes, :>, 500
  end

  test "where a run would be given up, the short ways give up too" do
    component = UrlPattern.compile({pathname: "/#{"*a" * 20}"}).components[:pathname]
    [20, 200, 2000].each { |size| assert_equal component.program.run("/#{"a" * size}").first, component.match?("/#{"a" * size}"), size }
    assert component.match?("/#{"a" * 20}")
    refute component.match?("/#{"a" * 2000}")
  end

  test "a relative pattern inherits what is less specific from its base (URL Pattern Standard, URLPatternInit processing)" do
    base = "https://u:p@example.com:8443/a/b?q#f"
    assert match?("/x", "https://example.com:8443/x", base: base)
    assert match?("/x", "https://other@example.com:8443/x?y#z", base: base)
    refute match?("/x", "https://example.com/x", base: base)
    assert match?("x", "https://example.com:8443/a/x", base: base)
    assert match?("?y", "https://example.com:8443/a/b?y#anything", base: base)
    refute match?("?y", "https://example.com:8443/a/c?y", base: base)
    assert match?("#y", "https://example.com:8443/a/b?q#y", base: base)
    refute match?("#y", "https://example.com:8443/a/b#y", base: base)
    assert match?("/x", "https://example.com/x", base: "https://example.com/{a}/b")
  end

  test "only the scheme and the host are matched without regard to case (draft-08 URL Pattern)" do
    assert match?("HTTPS://EXAMPLE.com/A?B#C", "https://example.COM/A?B#C")
    %w[https://example.com/a?B#C https://example.com/A?b#C https://example.com/A?B#c].each { |url| refute match?("https://example.com/A?B#C", url), url }
    assert match?("https://Faß.de/*", "https://xn--fa-hia.de/x")
  end

  test "a port that is left out is the default one, and * is any" do
    assert match?("https://example.com/*", "https://example.com:443/")
    refute match?("https://example.com/*", "https://example.com:8443/")
    assert match?("https://example.com:*/*", "https://example.com:8443/")
    assert match?("https://example.com:443/*", "https://example.com/")
  end

  test "a pattern without a scheme needs a base" do
    assert_raises(Hikyaku::InvalidMatcher) { UrlPattern.compile("/a") }
    assert_raises(Hikyaku::InvalidMatcher) { UrlPattern.compile({"pathname" => "/a"}, base: "https://a") }
    assert_raises(Hikyaku::InvalidMatcher) { UrlPattern.compile("/a", base: "not a URL") }
  end

  test "hostile patterns are compiled or refused in a sentence" do
    ["(" * 4096, "{" * 4096, ":" * 4096, "*" * 4096, "\\" * 4095, "/(#{"(?:" * 1000}a#{")" * 1000})", "/([#{"[" * 1000}a#{"]" * 1000}])", "/(a{99999999999999999999})",
      "/(a{16384})", "/(#{"a{1000}" * 20})", "/((?:(?:a{100}){100}){100})", "/:#{"a" * 4000}", "/#{(0..500).map { |number| ":a#{number}" }.join}", "é" * 2048, "[" * 4096,
      "https://#{"[" * 4000}", "https://#{"é" * 1000}/", "/{#{"a" * 4000}}+", "/(#{(0..254).map { |code| "[\\x#{format("%02x", code / 2)}-~#{code}]" }.join})"].each do |pattern|
      UrlPattern.compile(pattern, base: "https://example.com/").match?(URL.parse("https://example.com/#{"a" * 4000}"))
    rescue Hikyaku::InvalidMatcher => error
      assert_match(/\A.+\z/, error.message, pattern[0, 30])
    end
  end

  test "a whole pattern is the programs of its components, each after its length" do
    bytes = UrlPattern.compile("https://example.com/books/:id").program
    programs = []
    until bytes.empty?
      size = bytes.unpack1("N")
      programs << bytes.byteslice(4, size)
      bytes = bytes.byteslice(4 + size..)
    end
    texts = ["https", "", "", "example.com", "", "/books/1", "", ""]
    assert_equal [true] * 8, programs.zip(texts).map { |program, text| Hikyaku::Hub::TopicProgram::Runner.new(program).run(text).first }
  end

  private

  def match?(pattern, url, base: nil) = UrlPattern.compile(pattern, base: base).match?(URL.parse(url))

  def compiled(entry)
    return if self.class.skipped.include?(entry["pattern"])
    pattern, base = entry["pattern"]
    UrlPattern.compile(pattern || {}, base: base)
  rescue Hikyaku::InvalidMatcher
    nil
  end

  def expected(entry)
    return :error if entry["expected_obj"] == "error"
    return unless entry.key?("inputs")
    (entry["expected_match"] == "error") ? :input_error : entry["expected_match"].is_a?(Hash)
  end

  def outcome(entry)
    pattern, base = entry["pattern"]
    compiled = UrlPattern.compile(pattern || {}, base: base)
    return unless entry.key?("inputs")
    input, input_base = entry["inputs"]
    begin
      compiled.match_input?(input || {}, base: input_base)
    rescue Hikyaku::InvalidMatcher
      :input_error
    end
  rescue Hikyaku::InvalidMatcher
    :error
  end
end
