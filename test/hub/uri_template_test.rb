# frozen_string_literal: true

require "json"
require_relative "../test_helper"
require "hikyaku/hub/uri_template"

class UriTemplateTest < Minitest::Test
  UriTemplate = Hikyaku::Hub::UriTemplate
  VECTORS = File.expand_path("../vectors/uritemplate", __dir__)
  WELL_FORMED = JSON.parse(File.read(File.join(VECTORS, "exceptions.json")))["well_formed"].keys

  # Template and each of its expansions; false where the template has none.
  def self.cases
    @cases ||= Dir[File.join(VECTORS, "{*-tests,spec-examples*}.json")].flat_map do |file|
      JSON.parse(File.read(file)).values.flat_map { |section| section["testcases"] }
    end
  end

  test "every expansion of every public case matches its template (RFC 6570, 0.x Topic Selectors)" do
    matched = self.class.cases.sum do |template, expansions|
      next 0 if expansions == false || !template.include?("{")
      compiled = UriTemplate.compile(template)
      Array(expansions).each { |expansion| assert compiled&.match?(expansion), [template, expansion].inspect }.size
    end
    assert_operator matched, :>, 150
  end

  test "what the public cases call malformed is no template, but for those listed with a reason (RFC 6570)" do
    malformed = self.class.cases.filter_map { |template, expansions| template if expansions == false }
    assert_operator malformed.size, :>, 30
    malformed.each { |template| assert_equal WELL_FORMED.include?(template), !UriTemplate.compile(template).nil?, template }
  end

  test "text without anything to fill in, and text that no template may hold, is no template" do
    ["", "/a", "a b", "}", "{", "{}", "{a", "a}", "{a}}", "{a b}", "{a}<", "{a} ", "%zz{a}", "{a}\"", "{a:0}", "{a:10000}", "{a*:1}", "{a.}", "{.}", "{a..b}", "{-a}", "{a,}", "{,a}", "{a}{", "\uFFFE{a}"].each do |text|
      assert_nil UriTemplate.compile(text), text
    end
  end

  MATCHING = {
    "/{a}" => [["/", "/x", "/x,y", "/%C3%A9", "/-._~"], ["", "/x/y", "/é", "/x?", "/%C", "/x=y", "/x "]],
    "/{a}/b" => [["/x/b", "//b"], ["/x/y/b", "/x/c"]],
    "/{a}{b}.c" => [["/xy.c", "/x.c.c"], ["/x/y.c"]],
    "{+a}" => [["", "x/y?z#", "[]@!$&'()*+,;=", "%2F"], ["x y", "<", "é", "%"]],
    "{#a}" => [["", "#", "#x/y"], ["x"]],
    "{.a}" => [["", ".x", ".x,y"], ["x", ".x/"]],
    "{.a*}" => [["", ".x", ".x.y", ".k=v.k2=v2"], ["x", "/"]],
    "{/a,b}" => [["", "/x", "/x/y"], ["x", "/x/y/z"]],
    "{/a*}" => [["", "/x", "/x/y/z", "/k=v"], ["x"]],
    "x{?q,r}" => [["x", "x?q=", "x?q=1", "x?r=2", "x?q=1&r=2", "x?q=1,2"], ["x?", "x?r=1&q=2", "x?z=1", "x?q", "x?q=1&", "x&q=1"]],
    "x{?q*}" => [["x", "x?q=1", "x?q=1&q=2", "x?other=1&more=2"], ["x?", "x&q=1", "x?q"]],
    "x?a=1{&q}" => [["x?a=1", "x?a=1&q=2"], ["x?a=1&r=2", "x?a=1?q=2"]],
    "{;a,b}" => [["", ";a", ";a=1", ";b=2", ";a;b=2"], [";b;a", "a=1", ";c"]],
    "/{a:3}" => [["/", "/abc", "/%C3%A9bc", "/%E2%82%AC%E2%82%AC%E2%82%AC", "/%F0%9F%98%80ab"], ["/abcd", "/a,b", "/%C3%A9bcd", "/%C3", "/%FFabc"]],
    "/{a:9999}" => [["/#{"x" * 500}"], ["/x/y"]],
    "/é/{a}" => [["/é/x", "/%C3%A9/x"], ["/e/x", "/%c3%a9/x"]],
    "/{%61.b_1}" => [["/x"], ["/x/"]],
    "https://example.com/{a}?x" => [["https://example.com/1?x"], ["https://example.com/1", "https://example.com/1?xy", "HTTPS://example.com/1?x"]]
  }.freeze

  test "a text matches when values of the variables expand the template to it (0.x Topic Selectors)" do
    MATCHING.each do |template, (yes, no)|
      compiled = UriTemplate.compile(template)
      yes.each { |text| assert compiled.match?(text), [template, text].inspect }
      no.each { |text| refute compiled.match?(text), [template, text].inspect }
      (yes + no).each { |text| assert_equal compiled.program.run(text).first, compiled.match?(text), [template, text].inspect }
    end
  end

  test "whatever matches begins with the prefix" do
    MATCHING.each { |template, (yes, _)| yes.each { |text| assert text.start_with?(UriTemplate.compile(template).prefix), template } }
    assert_equal "https://example.com/", UriTemplate.compile("https://example.com/{a}?x").prefix
    assert_equal "/", UriTemplate.compile("/é/{a}").prefix
  end

  test "what would be too large is refused in a sentence" do
    error = assert_raises(Hikyaku::InvalidMatcher) { UriTemplate.compile("{a:100}" * 10) }
    assert_match(/too large/, error.message)
    assert UriTemplate.compile("{a}" * 1000)
    assert UriTemplate.compile("{?#{(0..400).map { |number| "a#{number}" }.join(",")}}")
  end
end
