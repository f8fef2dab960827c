# frozen_string_literal: true

require "test_helper"
require "hikyaku/broker/address"

class BrokerAddressTest < Minitest::Test
  Address = Hikyaku::Broker::Address

  {
    "unix:/run/hikyaku.sock" => "unix:/run/hikyaku.sock", "unix:///run/h.sock" => "unix:/run/h.sock", "unix:h.sock" => "unix:h.sock",
    "/run/h.sock" => "unix:/run/h.sock", "./h.sock" => "unix:./h.sock",
    "tcp://Example.com:4000" => "tcp://example.com:4000", "tcp://127.0.0.1:4000/" => "tcp://127.0.0.1:4000",
    "localhost:4000" => "tcp://localhost:4000", "[::1]:4000" => "tcp://[::1]:4000", "tcp://[::1]:65535" => "tcp://[::1]:65535"
  }.each do |text, meant|
    test "#{text} is understood" do
      assert_equal meant, Address.parse(text).to_s
      assert_equal Address.parse(text), Address.parse(Address.parse(text).to_s)
    end
  end

  ["", "nowhere", "localhost", "localhost:", "localhost:x", "localhost:0", "localhost:65536", "localhost:123456", "http://localhost:1",
    "tcp://", "tcp://:1", "[::1]", "::1:4000", "unix:", "a b:1", "unix:/#{"x" * 107}", nil].each_with_index do |text, index|
    test "no address #{index} is refused" do
      assert_raises(Hikyaku::ConfigError) { Address.parse(text) }
    end
  end

  test "the environment says where the broker is" do
    assert_equal "unix:#{Hikyaku::Broker::DEFAULT_SOCKET}", Address.default({}).to_s
    assert Address.default({}).default?
    assert_equal "unix:h.sock", Address.default({"HIKYAKU_BROKER_SOCKET" => "h.sock"}).to_s
    assert_equal "tcp://a:1", Address.default({"HIKYAKU_BROKER_SOCKET" => "h.sock", "HIKYAKU_BROKER_ADDRESS" => "a:1"}).to_s
    assert Address.default({"HIKYAKU_BROKER_SOCKET" => "none", "HIKYAKU_BROKER_ADDRESS" => " "}).default?
    assert_raises(Hikyaku::ConfigError) { Address.default({"HIKYAKU_BROKER_ADDRESS" => "nowhere"}) }
  end
end
