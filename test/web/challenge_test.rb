# frozen_string_literal: true

require "test_helper"
require "hikyaku/web/problem"

# Mercure draft-08, section "Error Responses"; RFC 6750 section 3; RFC 9728 section 5.1.
class ChallengeTest < Minitest::Test
  URL = "https://hub.example.com/.well-known/oauth-protected-resource/.well-known/mercure"

  def header(...) = Hikyaku::Web::Challenge.header(...)

  test "without a token there is no error code" do
    assert_equal "Bearer resource_metadata=\"#{URL}\"", header(resource_metadata: URL)
    assert_equal "Bearer resource_metadata=\"#{URL}\"", header(nil, resource_metadata: URL)
  end

  test "with one there is, and the metadata all the same" do
    %w[invalid_request invalid_token insufficient_scope].each do |code|
      assert_equal "Bearer error=\"#{code}\", resource_metadata=\"#{URL}\"", header(code, resource_metadata: URL)
    end
  end

  test "a challenge has a parameter even when nothing is known" do
    assert_equal "Bearer realm=\"Mercure\"", header
    assert_equal "Bearer error=\"invalid_token\", realm=\"Mercure\"", header("invalid_token")
  end

  test "a value cannot end its quotes or the header" do
    assert_equal "Bearer resource_metadata=\"a\\\"b\\\\cd\"", header(resource_metadata: "a\"b\\c\r\n\0\u00e9\u007fd")
  end
end
