# frozen_string_literal: true

require "test_helper"
require "hikyaku/web/request"
require "support/engine_dump"
require_relative "messages"
require_relative "outcome"
require_relative "vectors"

# The parsers in C and in Ruby are twins: whatever arrives, however it is cut and whatever the limits, it comes to the same.
class HTTPTwinsTest < Minitest::Test
  LIMITS = {
    leading_lines: 0..4, method_bytes: 3..8, target_bytes: 1..20, line_bytes: 5..40, head_bytes: 20..120, headers: 0..4, chunk_line_bytes: 1..12, trailer_bytes: 2..30
  }.freeze
  Question = Struct.new(:kind, :method, :first, :step, :limits, :bytes, keyword_init: true) do
    def fields = [kind.to_s, method, first.to_s, step.to_s, limits.map { |pair| pair.join("=") }.join(","), bytes]

    def outcome = Outcome.of(kind, bytes, method: method, first: first, step: step, limits: limits)
  end
  private_constant :LIMITS, :Question

  def setup
    skip_unless_available("make", "cc")
  end

  test "messages at random come to the same in C as in Ruby" do
    random = Random.new(1)
    messages = Messages.new(random)
    questions = Array.new(7_000) { |index| question(index.even? ? :request : :response, messages, random) }
    outcomes = assert_twins(questions)
    assert_operator outcomes.count { |outcome| outcome.end_with?("idle\n") }, :>, 600
    reasons = outcomes.filter_map { |outcome| outcome[/^error (\w+)/, 1] }
    assert_operator reasons.tally.count { |_, times| times > 2 }, :>, 25, reasons.tally
  end

  test "the vectors come to the same cut in the middle" do
    assert_twins(Vectors.all.map do |vector|
      Question.new(kind: vector.kind, method: vector.method, first: vector.bytes.bytesize / 2, step: 1, limits: vector.limits, bytes: vector.bytes)
    end)
  end

  test "forms at random come to the same in C as in Ruby" do
    random = Random.new(2)
    parts = ["&", "&", "=", "=", "+", "%", "%4", "%41", "%2b", "%C3%A9", "%zz", "%00", "a", "topic", "\xE9", "\0", "é"].map(&:b)
    forms = Array.new(3_000) { Array.new(random.rand(12)) { parts.sample(random: random) }.join }
    answers = ask(forms.map { |form| Question.new(kind: :form, method: "", first: 0, step: 0, limits: {}, bytes: form) })
    forms.zip(answers) do |form, answer|
      expected = Hikyaku::Web::URLEncodedForm.parse(form).map { |name, value| "#{Outcome.line("name", name)}\n#{Outcome.line("value", value)}\n" }.join
      assert_equal expected, answer, form.inspect
    end
  end

  test "both give the same reasons, and the same statuses" do
    header = File.read(File.expand_path("../../ext/hikyaku/engine/wire/hk_http1.h", __dir__))
    in_c = header[/#define HK_HTTP1_ERROR_LIST.*?^$/m].scan(/X\((\w+), (\d+), "([^"]+)"\)/).drop(1)
    assert_operator in_c.size, :>, 25
    in_c.each do |name, status, text|
      error = Hikyaku::HTTP::Parser::Malformed.new(name.downcase.to_sym)
      assert_equal [status.to_i, "the HTTP message cannot be used: #{text}"], [error.status, error.message]
    end
  end

  test "both have the same limits unless told otherwise" do
    source = File.read(File.expand_path("../../ext/hikyaku/engine/wire/hk_http1.c", __dir__))
    limits = Hikyaku::HTTP::Parser::Limits.new
    in_c = source[/hk_http1_default_limits = \{.*?^\}/m].scan(/\.(\w+) = (\d+)/)
    assert_equal 7, in_c.size
    in_c.each { |name, value| assert_equal Integer(value), limits.public_send(name), name }
    assert_includes File.read(File.expand_path("../../ext/hikyaku/engine/wire/hk_http1.h", __dir__)), "#define HK_HTTP1_HEADERS #{limits.headers}\n"
  end

  private

  def question(kind, messages, random)
    bytes = messages.next(kind)
    limits = random.rand(4).zero? ? LIMITS.to_a.sample(2, random: random).to_h { |name, range| [name, random.rand(range)] } : {}
    Question.new(kind: kind, method: %w[GET GET GET HEAD CONNECT].sample(random: random), first: random.rand(bytes.bytesize + 1),
      step: random.rand(4), limits: limits, bytes: bytes)
  end

  def assert_twins(questions)
    questions.zip(ask(questions)).map do |question, answer|
      assert_equal question.outcome, answer, question.inspect
      answer
    end
  end

  # @return [Array<String>] what the parser in C makes of each
  def ask(questions)
    answers = EngineDump.new("http1").ask(questions.flat_map(&:fields)).slice_after(".").map { |lines| lines[0...-1].map { |line| "#{line}\n" }.join }
    assert_equal questions.size, answers.size
    answers
  end
end
