# frozen_string_literal: true

require "test_helper"
require "hikyaku/config"
require "hikyaku/web"

# Whose subscribers are counted by their address.
class CountedAddressesTest < Minitest::Test
  def web(**settings) = Hikyaku::Web.new(Hikyaku::Config.new(dev: true, **settings))

  def subscribe(web, address)
    status, = web.call({"REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/.well-known/mercure", "QUERY_STRING" => "match=/a",
      "SERVER_PROTOCOL" => "HTTP/1.1", "rack.url_scheme" => "http", "REMOTE_ADDR" => address})
    status
  end

  test "an address has a thousand; this machine, which may be a proxy, as many as there may be" do
    web = self.web
    1_000.times { assert_equal 200, subscribe(web, "192.0.2.1") }
    assert_equal 429, subscribe(web, "192.0.2.1")
    ["127.0.0.1", "127.9.8.7", "::1", nil].each { |address| 1_001.times { assert_equal 200, subscribe(web, address) } }
  end

  test "once somebody has said how many, that is about this machine, too" do
    web = self.web(max_connections_per_address: 1)
    %w[127.0.0.1 127.9.8.7 ::1 192.0.2.1].each { |address| assert_equal [200, 429], Array.new(2) { subscribe(web, address) }, address }
    3.times { assert_equal 200, subscribe(web, nil) }
  end
end
