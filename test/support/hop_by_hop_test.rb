# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/cache/header_fields"
require "hikyaku/http/proxy"
require "hikyaku/http/request"
require "hikyaku/server/relay"

# RFC 9110, section 7.6.1: what belongs to one connection goes no further, in whichever part a message is passed on or kept.
class HopByHopTest < Minitest::Test
  FIELDS = %w[connection keep-alive proxy-connection te trailer transfer-encoding upgrade].freeze
  GIVEN = [*FIELDS.map { |name| [name, (name == "connection") ? "close, X-Hop" : "x"] }, %w[x-hop 1], %w[x-end 1]].freeze

  test "the cache keeps none of them" do
    assert_equal [%w[x-end 1]], Hikyaku::HTTP::Cache::HeaderFields.end_to_end(GIVEN)
  end

  test "the proxy passes none of them on" do
    assert_equal [%w[x-end 1]], Hikyaku::HTTP::Proxy::Forwarding.end_to_end(GIVEN)
  end

  test "the relay of a hub passes none of them on" do
    env = GIVEN.to_h { |name, value| ["HTTP_#{name.upcase.tr("-", "_")}", value] }.merge("HTTP_VERSION" => "HTTP/1.1")
    assert_equal({"x-end" => "1"}, Hikyaku::Server::Relay.const_get(:Request).new(env, limit: 1).headers)
  end

  test "the client lets no caller set one" do
    FIELDS.each do |name|
      error = assert_raises(ArgumentError) { Hikyaku::HTTP::Request.new("GET", "http://a.example/", headers: {name => "x"}) }
      assert_includes error.message.downcase, name
    end
  end

  test "an option may stand anywhere in the list, in capitals, and with white space" do
    assert_equal %w[a b-c d], Hikyaku::Support::HopByHop.named(["A ,\tB-c", "d"])
  end
end
