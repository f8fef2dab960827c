# frozen_string_literal: true

require "test_helper"
require "hikyaku/server/sidecar/settings"
require "tmpdir"

# What hub puma.rb, the environment and the file describe.
class SidecarSettingsTest < Minitest::Test
  def plan(given = {}, env: {}, url: "http://localhost:9292") = Hikyaku::Server::Sidecar::Settings.new(**given).plan(env: env, url: url)

  # As the hub's process reads it.
  def config(plan) = Hikyaku::Config.new(**JSON.parse(plan.to_json)["settings"].transform_keys(&:to_sym))

  def in_folder(files = {})
    Dir.mktmpdir do |path|
      files.each { |name, text| FileUtils.mkdir_p(File.dirname("#{path}/#{name}")).then { File.write("#{path}/#{name}", text) } }
      Dir.chdir(path) { yield }
    end
  end

  test "puma.rb counts more than the environment, that more than the file" do
    in_folder("config/hikyaku.yml" => "heartbeat: 1\nhistory: 1M\nmax_topics: 7\n") do
      config = config(plan({heartbeat: 3, anonymous: true}, env: {"HIKYAKU_HEARTBEAT" => "2", "HIKYAKU_HISTORY" => "2M"}))
      assert_equal [3, 2 * 1024 * 1024, 7], [config.heartbeat, config.history, config.max_topics]
    end
  end

  test "another file may be named" do
    in_folder("hub.yml" => "anonymous: true\nmax_topics: 7\n", "config/hikyaku.yml" => "max_topics: 8\n") do
      assert_equal 7, config(plan(env: {"HIKYAKU_CONFIG" => "hub.yml"})).max_topics
    end
  end

  # One value of each kind.
  GIVEN = {
    publisher_key: "-----BEGIN X-----\nyes: no\n# \u{1f600}\"\\\u2028\u007f", subscriber_key: "!s", alg: "HS384", anonymous: true, subscriptions: false, heartbeat: 0.5, history: "64K",
    cors_origins: ["https://a.example", "*"], slow_readers: ["close=https://a.example/*", "gap=/x"], trusted_proxies: ["10.0.0.0/8"], log_format: :json, max_connections: 10_000,
    issuers: [{issuer: "https://id.example.com", jwks: "https://id.example.com/jwks.json", alg: "ES256"}, {issuer: "b", publisher_key: "k", subscriber_alg: "HS512"}], cookie_name: "c"
  }.freeze

  test "the hub's process gets every setting as it was" do
    wanted = Hikyaku::Config.new(**GIVEN, resource_identifier: "http://localhost:9292/.well-known/mercure")
    got = config(plan(GIVEN))
    names = Hikyaku::Config::Settings::ALL.map(&:name) - [:issuers]
    assert_equal names.to_h { |name| [name, wanted.public_send(name)] }, names.to_h { |name| [name, got.public_send(name)] }
    assert_equal wanted.issuers.map(&:to_h), got.issuers.map(&:to_h)
  end

  test "the hub's own URL is the server's, unless it was said" do
    assert_equal "http://localhost:9292/hub", plan({anonymous: true, path: "/hub"}).about["hub_url"]
    assert_equal "https://www.example.com/.well-known/mercure", plan({anonymous: true, resource_identifier: "https://www.example.com/.well-known/mercure"}).about["hub_url"]
    assert_equal "http://localhost/.well-known/mercure", plan({anonymous: true}, url: nil).about["hub_url"]
  end

  WRONG = [
    [{heartbeat: "often"}, {}, /\Aheartbeat: /],
    [{}, {"HIKYAKU_HEARTBEAT" => "often"}, /\AHIKYAKU_HEARTBEAT: /],
    [{histroy: 1}, {}, /unknown setting histroy; did you mean history/],
    [{}, {}, /nobody could use this hub/],
    [{anonymous: true, listen: ":80"}, {}, /\Alisten: .*through Puma/],
    [{anonymous: true, handover: "/x"}, {}, /\Ahandover: .*through Puma/],
    [{anonymous: true}, {"HIKYAKU_CONFIG" => "/nowhere.yml"}, /nowhere\.yml/]
  ].freeze

  test "what is wrong is said in one sentence" do
    WRONG.each do |given, env, message|
      error = assert_raises(Hikyaku::ConfigError, [given, env].inspect) { plan(given, env: env) }
      assert_match message, error.message
      refute_includes error.message, "\n"
    end
  end

  test "the engine is a setting like any other" do
    assert_equal "ruby", plan({anonymous: true, engine: "ruby"}).settings["engine"]
    assert_equal "ruby", plan({anonymous: true}, env: {"HIKYAKU_ENGINE" => "ruby"}).settings["engine"]
    refute plan({anonymous: true}).settings.key?("engine")
  end

  test "where the environment has a hub listen for other purposes does not matter" do
    assert_equal({"anonymous" => true, "resource_identifier" => "http://localhost:9292/.well-known/mercure"}, plan(env: {"HIKYAKU_LISTEN" => ":80", "HIKYAKU_ANONYMOUS" => "1"}).settings)
  end

  test "what is probably not meant is told, but not that only the workers publish" do
    assert_empty plan({anonymous: true}).doubts
    assert_match(/nobody can subscribe/, plan({publisher_key: "x" * 32}).doubts.join)
    assert_match(/did you mean HIKYAKU_HISTORY/, plan({anonymous: true}, env: {"HIKYAKU_HISTROY" => "1"}).doubts.join)
  end

  test "another setting makes another hub, and the same do not" do
    assert_equal plan({anonymous: true}).digest, plan({anonymous: true}).digest
    refute_equal plan({anonymous: true}).digest, plan({anonymous: true, heartbeat: 3}).digest
  end

  test "keys are shown nowhere" do
    given = Hikyaku::Server::Sidecar::Settings.new(publisher_key: "secret" * 6)
    plan = given.plan(env: {})
    [given, plan].each { |each| refute_includes "#{each} #{each.inspect}", "secret" }
  end
end
