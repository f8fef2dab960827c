# frozen_string_literal: true

require "test_helper"
require "hikyaku/web/request"

class WebURLEncodedFormTest < Minitest::Test
  URLEncodedForm = Hikyaku::Web::URLEncodedForm

  # By the letter of the URL Living Standard, a byte at a time.
  def plainly(text)
    bytes = text.bytes
    decoded = []
    until bytes.empty?
      byte = bytes.shift
      hex = bytes.first(2).pack("C*")
      decoded << ((byte == 0x25 && hex.match?(/\A\h\h\z/)) ? bytes.shift(2).then { hex.hex } : byte)
    end
    decoded.pack("C*").force_encoding(Encoding::UTF_8)
  end

  test "names and values are decoded, and what is no escape stays" do
    {
      "a=b" => [%w[a b]], "a" => [["a", ""]], "=b" => [["", "b"]], "a=b=c%3d" => [["a", "b=c="]], "&a=1&&b=2&" => [%w[a 1], %w[b 2]],
      "a=%41%2f%2F+%2B" => [["a", "A// +"]], "%61=b" => [%w[a b]], "a=100%&b=%4&c=%zz%41" => [%w[a 100%], %w[b %4], %w[c %zzA]],
      "a=%0D%0a=" => [["a", "\r\n="]], "a=%3D%0A%41" => [["a", "=\nA"]], "a=x=%0A%41" => [["a", "x=\nA"]], "a=%E2%98%83" => [%w[a ☃]],
      "a=%00\x00\r\n" => [["a", "\0\0\r\n"]], "" => []
    }.each do |string, pairs|
      parsed = URLEncodedForm.parse(string)
      assert_equal pairs, parsed, string
      assert(parsed.flatten.all? { |text| text.encoding == Encoding::UTF_8 }, string)
    end
  end

  test "what is not UTF-8 is left as it is" do
    value = URLEncodedForm.parse("a=%FFx").dig(0, 1)
    refute_predicate value, :valid_encoding?
    assert_equal "\xFFx".b, value.b
  end

  test "whatever stands there is decoded as the standard says" do
    random = Random.new(7)
    signs = ["%", "%", "=", "+", "\r", "\n", "\xC3", "%C3%A9", "%3D", "%0a", "%%", "a", "4", "F", "g"]
    2_000.times do
      text = Array.new(random.rand(12)) { signs.sample(random: random) }.join.b
      assert_equal plainly(text), URLEncodedForm.unescape(text), text.inspect
      assert_equal [["n", plainly(text.tr("+", " "))]], URLEncodedForm.parse("n=#{text}"), text.inspect
    end
  end

  test "the text that was given stays as it is" do
    text = "a=1+%41"
    assert_equal [["a", "1 A"]], URLEncodedForm.parse(text)
    assert_equal "1+A", URLEncodedForm.unescape("1+%41")
  end
end
