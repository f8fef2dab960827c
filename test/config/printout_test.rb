# frozen_string_literal: true

require "test_helper"
require "hikyaku/config"
require "hikyaku/config/printout"
require "tempfile"
require "psych"

class ConfigPrintoutTest < Minitest::Test
  Config = Hikyaku::Config
  SECRET = "s3cret-of-the-tests-that-is-long-enough"

  def print(config) = Config::Printout.new(config).to_s

  def reload(text)
    Tempfile.create(["hub", ".yml"]) do |file|
      file.write(text)
      file.close
      Config.load(file: file.path)
    end
  end

  test "what is printed can be read again and means the same" do
    config = Config.new(
      listen: "unix:/tmp/a \"quoted\" \\ path.sock", anonymous: true, publisher_key: "file:/etc/key.pem", subscriber_key: "https://id.example/keys",
      jwks: "file:keys.json", alg: "ES256", subscriber_alg: "RS256", issuer: "no", cors_origins: ["*", "https://a.example"],
      slow_readers: ["close=https://a.example/:id", "gap=*"], history: 1_000_000, heartbeat: 0.5, max_connections: 7,
      resource_identifier: "https://example.com/hub", log_level: "debug", trusted_proxies: ["::1"],
      issuers: [{issuer: "https://id.example", jwks: "https://id.example/keys", alg: "EdDSA"}]
    )
    again = reload(print(config))
    assert_equal config.to_h, again.to_h
    assert_equal config.issuer_list, again.issuer_list
  end

  test "defaults and developer mode can be read again" do
    [Config.new(dev: true), Config.new(anonymous: true), Config.new(jwks: "https://id.example/keys")].each do |config|
      again = reload(print(config))
      assert_equal config.to_h, again.to_h
      assert_equal config.issuer_list, again.issuer_list
      assert_equal config.development_secret?, again.development_secret?
    end
  end

  test "secrets are hidden, and a hidden secret is not taken for one" do
    text = print(Config.new(publisher_key: SECRET, subscriber_key: SECRET, issuers: [{issuer: "x", publisher_key: SECRET}]))
    refute_includes text, SECRET
    assert_equal "[hidden]", Psych.safe_load(text)["publisher_key"]
    assert_includes assert_raises(Hikyaku::ConfigError) { reload(text) }.message, "publisher_key: expected the key itself"
  end

  test "the secret of developer mode is not printed" do
    refute_includes print(Config.new(dev: true)), "ChangeThis"
  end

  test "each value says where it comes from" do
    config = Config.load(flags: {anonymous: true, heartbeat: "5"}, env: {"HIKYAKU_THREADS" => "3"})
    assert_includes print(config), "heartbeat: 5  # --heartbeat\n"
    assert_includes print(config), "threads: 3  # HIKYAKU_THREADS\n"
    assert_includes print(config), "log_level: info  # default\n"
    assert_includes print(Config.load(flags: {dev: true})), "legacy: true  # --dev\n"
  end

  test "every setting is printed" do
    text = print(Config.new(dev: true))
    Config::Settings::ALL.each { |setting| assert_match(/^(# )?#{setting.name}:/, text) }
  end
end
