# frozen_string_literal: true

require "test_helper"
require "hikyaku/config"
require "hikyaku/web"

# Whose subscribers are counted by their address.
class CountedAddressesTest < Minitest::Test
  def web(**settings) = Hikyaku::Web.new(Hikyaku::Config.new(dev: true, **settings))

  def subscribe(web, address, client = nil)
    status, = web.call({"REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/.well-known/mercure", "QUERY_STRING" => "match=/a",
                        "SERVER_PROTOCOL" => "HTTP/1.1", "rack.url_scheme" => "http", "REMOTE_ADDR" => address, "HTTP_X_FORWARDED_FOR" => client}.compact)
    status
  end

  test "an address has a thousand; this machine, which may be a proxy, as many as there may be" do
    web = self.web
    1_000.times { assert_equal 200, subscribe(web, "192.0.2.1") }
    assert_equal 429, subscribe(web, "192.0.2.1")
    ["127.0.0.1", "127.9.8.7", "::1", "::ffff:127.0.0.1", nil].each { |address| 1_001.times { assert_equal 200, subscribe(web, address) } }
  end

  test "behind a proxy that is trusted, however its address is written, a /64 counts as one" do
    {"10.0.0.0/8" => %w[10.0.0.1 ::ffff:10.0.0.1], "::ffff:10.0.0.0/104" => %w[::ffff:10.0.0.1]}.each do |network, proxies|
      web = self.web(max_connections_per_address: 1, trusted_proxies: [network])
      proxies.each_with_index do |proxy, i|
        net = "2001:db8:#{i}"
        assert_equal [200, 429, 200], ["#{net}:1::1", "#{net}:1::2", "#{net}:2::1"].map { |client| subscribe(web, proxy, client) }, [network, proxy].inspect
      end
    end
  end

  test "once somebody has said how many, that is about this machine, too" do
    web = self.web(max_connections_per_address: 1)
    %w[127.0.0.1 127.9.8.7 ::1 192.0.2.1].each { |address| assert_equal [200, 429], Array.new(2) { subscribe(web, address) }, address }
    3.times { assert_equal 200, subscribe(web, nil) }
  end
end
