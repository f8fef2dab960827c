# frozen_string_literal: true

$LOAD_PATH.unshift File.expand_path("../lib", __dir__)
require "minitest/autorun"

# Tests are sentences: `test "a reader that comes back gets what it missed" do … end`.
module SentenceTests
  def test(sentence, &block)
    name = "test_#{sentence.gsub(/\W+/, "_")}"
    raise ArgumentError, "a test with this sentence exists: #{sentence}" if method_defined?(name)
    define_method(name, &block)
  end
end
Minitest::Test.extend(SentenceTests)
