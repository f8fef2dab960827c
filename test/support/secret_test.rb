# frozen_string_literal: true

require "test_helper"
require "hikyaku/support/secret"

class SecretTest < Minitest::Test
  EMPTY = ["", " \t\r\n\v\f", "\0" * 32, "\0 \n", "\u00A0", "\u200B", "\u2000\u2028\u2029\u202F\u205F\u3000\u0085", "\u200C\u200D\u2060\uFEFF\u00AD", "\u3164", " \u00A0\0\u200B\n"].freeze
  SAID = ["a", " a ", "\u00A0a", "é", "\xFF".b, "\xA0\xA0".b, "\0\x01", "😀", "\u200Bs\u200B"].freeze

  test "zero bytes and white space of any kind, seen or not, are no secret, in whatever encoding they come" do
    EMPTY.each { |text| [text, text.b, text.dup.freeze].each { |secret| assert Hikyaku::Secret.empty?(secret), text.dump } }
  end

  test "whatever else is in it makes a secret" do
    SAID.each { |text| [text, text.b].each { |secret| refute Hikyaku::Secret.empty?(secret), text.dump } }
  end

  test "a secret stays what it was" do
    secret = "\xFF\u00A0".b
    Hikyaku::Secret.empty?(secret)
    assert_equal Encoding::BINARY, secret.encoding
  end
end
