# frozen_string_literal: true

$LOAD_PATH.unshift File.expand_path("../lib", __dir__)

# Rails' Minitest plugin would load Active Support into every test, and hide a `require` that is missing.
ENV["MT_NO_PLUGINS"] = "1"
require "minitest/autorun"
require_relative "support/availability"
require_relative "support/report"

# Settings of the shell that runs the tests are not settings of the hubs that the tests start. What tests themselves are told
# stays: HIKYAKU_TEST_ENGINE, say.
ENV.delete_if { |name, _| name.start_with?("HIKYAKU_", "MERCURE_") && !name.start_with?("HIKYAKU_TEST_") }
ENV.delete("HIKYAKU_TEST_REPORT")

# Tests are sentences: `test "a reader that comes back gets what it missed" do … end`.
module SentenceTests
  def test(sentence, &block)
    name = "test_#{sentence.gsub(/\W+/, "_")}"
    raise ArgumentError, "a test with this sentence exists: #{sentence}" if method_defined?(name)
    define_method(name, &block)
  end
end
Minitest::Test.extend(SentenceTests)
Minitest::Test.include(Availability)
