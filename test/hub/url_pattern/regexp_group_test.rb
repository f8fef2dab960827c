# frozen_string_literal: true

require_relative "../../test_helper"
require "hikyaku/hub/url_pattern"

class RegexpGroupTest < Minitest::Test
  UrlPattern = Hikyaku::Hub::UrlPattern

  # Group => paths after the slash that match, and that do not.
  MATCHING = {
    "a|bc" => [%w[a bc], %w[ab b c]], "a|" => [["a", ""], %w[aa]], "\\d+" => [%w[1 123], ["", "a", "1a"]], "\\D" => [%w[a -], %w[1]],
    "\\w+" => [%w[aZ_9], %w[a-b]], "\\W" => [%w[- ~], %w[a _]], "\\S+" => [%w[a-b], [""]], "\\s" => [[], %w[a]], "." => [%w[a -], ["", "ab"]],
    "[a-c]" => [%w[a b c], %w[d -]], "[^a-c]" => [%w[d -], %w[a]], "[\\d\\-]" => [%w[1 -], %w[a]], "[[a-d]--[bc]]" => [%w[a d], %w[b c]], "[[a-d]&&[c-f]]" => [%w[c d], %w[b e]],
    "[a[0-9]]+" => [%w[a a1], %w[b]], "[^[a-c]d]" => [%w[e], %w[a d]], "[\\]\\[\\/\\^]" => [["]", "[", "/", "^"], %w[a]], "[]" => [[], %w[a]], "[^]" => [%w[a], [""]],
    "a{2}" => [%w[aa], %w[a aaa]], "a{2,}" => [%w[aa aaaa], %w[a]], "a{1,2}" => [%w[a aa], %w[aaa] + [""]], "a{0}b" => [%w[b], %w[ab]], "(?:ab)+?" => [%w[ab abab], %w[aba]],
    "(?<x>a)(?:b|c)*" => [%w[a abcb], %w[b]], "(?:(?<x>a)|(?<x>b))" => [%w[a b], %w[ab]], "(?:a*)*" => [["", "aaa"], %w[b]], "\\x61\\u0062\\u{63}" => [%w[abc], %w[ab]],
    "a\\.b" => [%w[a.b], %w[aXb]], "a\\/b" => [%w[a/b], %w[ab]], "a/b" => [%w[a/b], %w[ab]], "\\u{1F600}?a" => [%w[a], %w[ba]], "[\\u{1F600}a]" => [%w[a], %w[b]], "[a-\\uFFFF]" => [%w[a z ~], %w[A]],
    "^a$" => [[], %w[a]], "a$" => [%w[a], %w[ab]], "[!-&\\&]" => [%w[! $ &], %w[a]], "\\$\\*\\+" => [%w[$*+], %w[$]], "\\cA" => [[], %w[a]], "a-b,:;=@!&'~_" => [%w[a-b,:;=@!&'~_], %w[a]]
  }.freeze

  test "groups match what JavaScript's regular expressions match" do
    MATCHING.each do |group, (yes, no)|
      pattern = compile(group)
      yes.each { |text| assert match?(pattern, text), "(#{group}) on #{text.inspect}" }
      no.each { |text| refute match?(pattern, text), "(#{group}) on #{text.inspect}" }
    end
  end

  test "what is a syntax error under the flag v is refused (ECMAScript, Patterns)" do
    ["*", "+a", "a**", "a+*", "a{2}{3}", "{", "}", "]", "a{", "a{,2}", "a{2", "{2}", "a{3,2}", "|*", "^*", "$+", "[", "[a", "[b-a]", "[a-", "[-a]", "[a-]", "[a--]", "[--a]", "[a-\\d]", "[\\d-a]", "[a-[b]]",
      "[(]", "[{]", "[|]", "[/]", "[&&]", "[a&&]", "[a&&&b]", "[a-b&&c]", "[a&&b--c]", "[a--b&&c]", "[ab&&c]", "[!!]", "[a##b]", "[..]", "[~~]", "\\a", "\\_", "\\-", "\\ ", "\\c", "\\c1", "\\x6", "\\u61", "\\u{}",
      "\\u{110000}", "\\01", "\\00", "[\\a]", "(?<>a)", "(?<1>a)", "(?<x>a)(?<x>b)", "(?<x>a)|b(?:(?<x>c)(?<x>d))", "(?a)", "(?*a)"].each do |group|
      error = assert_raises(Hikyaku::InvalidMatcher, group) { compile(group) }
      assert_match(/\AURL pattern .+\z/, error.message)
    end
  end

  test "names of groups are used once in a component, except in alternatives" do
    assert compile("(?:(?<x>a)|(?<x>b))")
    assert_raises(Hikyaku::InvalidMatcher) { UrlPattern.compile({pathname: "/((?<x>a))/((?<x>b))"}.transform_values { |pattern| pattern.gsub("((", "(a(") }) }
    assert_raises(Hikyaku::InvalidMatcher) { compile("(?:(?<x>a)|b)(?<x>c)") }
  end

  test "what a finite automaton does not hold is refused as not supported" do
    {"(?=a)" => "lookaround", "(?!a)" => "lookaround", "(?<=a)" => "lookaround", "(?<!a)" => "lookaround", "(?i:a)" => "inline flags", "(?<x>a)\\1" => "back references", "(?<x>a)\\k<x>" => "back references",
     "\\ba" => "word boundaries", "a\\B" => "word boundaries", "\\p{L}" => "Unicode properties", "[\\P{L}]" => "Unicode properties", "[\\q{ab}]" => "strings in classes"}.each do |group, what|
      error = assert_raises(Hikyaku::InvalidMatcher, group) { compile(group) }
      assert_includes error.message, what
      assert_includes error.message, "not support"
    end
  end

  test "what would be too large is refused before it is made" do
    ["a{20000}", "(?:a{200}){200}", "(?:(?:(?:a{1000}){1000}){1000}){1000}", "a{1000001}", "a{0,99999999999999999999999}", "[a-z]{9000}[a-z]{9000}"].each do |group|
      error = assert_raises(Hikyaku::InvalidMatcher, group) { compile(group) }
      assert_match(/large|times/, error.message)
    end
    assert compile("a{16000}")
  end

  private

  # A group that starts with a question mark would not be one.
  def compile(group) = UrlPattern.compile({pathname: "/(#{"(?:)" if group.start_with?("?")}#{"(?:)" if group.start_with?("(?")}#{group})"})

  def match?(pattern, text) = pattern.components[:pathname].match?("/#{text}")
end
