# frozen_string_literal: true

require "test_helper"
require "support/rails_application"
require "support/rails_settings"

# What `config.hikyaku` becomes.
class SettingsTest < Minitest::Test
  include RailsSettings

  PATH = "/.well-known/mercure"

  Application = RailsSettings::Application

  test "every setting of the hub can be set by its name" do
    settings = settings(history: 1_000_000, heartbeat: 3, cors_origins: ["https://a.example"])
    assert_equal [1_000_000, 3, ["https://a.example"]], settings.config.then { |config| [config.history, config.heartbeat, config.cors_origins] }
  end

  test "a setting that does not exist, or does not fit, is named" do
    error = assert_raises(Hikyaku::ConfigError) { settings(histroy: 1).config }
    assert_equal "config.hikyaku: unknown setting histroy; did you mean history?", error.message
    error = assert_raises(Hikyaku::ConfigError) { settings(heartbeat: "often").config }
    assert_match(/\Aconfig\.hikyaku: heartbeat: /, error.message)
  end

  test "keys are derived from secret_key_base, and are the same in every process" do
    one = settings.config
    assert_equal one.publisher_key, settings.config.publisher_key
    assert_equal one.publisher_key, one.subscriber_key
    assert_operator one.publisher_key.bytesize, :>=, 32
  end

  test "keys of the credentials count more, and those of config.hikyaku most" do
    stored = {hikyaku: {publisher_key: "p" * 32, subscriber_key: "s" * 32}}
    config = settings(credentials: stored).config
    assert_equal ["p" * 32, "s" * 32], [config.publisher_key, config.subscriber_key]
    config = settings(subscriber_key: "own" * 11, credentials: stored).config
    assert_equal ["p" * 32, "own" * 11], [config.publisher_key, config.subscriber_key]
  end

  test "a JWK Set stands in place of keys" do
    config = settings(jwks: "https://example.com/jwks.json").config
    assert_nil config.publisher_key
  end

  test "the resource identifier follows from what the application knows of its own URL" do
    {
      {} => "http://localhost:3000#{PATH}",
      {url: {host: "shop.example.com"}} => "http://shop.example.com#{PATH}",
      {url: {host: "shop.example.com", protocol: "https"}} => "https://shop.example.com#{PATH}",
      {url: {host: "shop.example.com", port: 8443}, force_ssl: true} => "https://shop.example.com:8443#{PATH}",
      {action_mailer: Application::MAILER.class.new({host: "mail.example.com"})} => "http://mail.example.com#{PATH}",
      {relative_url_root: "/app"} => "http://localhost:3000/app#{PATH}",
      {settings: {path: "/hub"}} => "http://localhost:3000/hub",
      {settings: {resource_identifier: "https://hub.example.com/hub"}} => "https://hub.example.com/hub"
    }.each { |given, identifier| assert_equal identifier, Settings.new(Application.new(**given)).config.resource_identifier, given.inspect }
  end

  test "where nothing says the application's own URL it follows the server" do
    served = Hikyaku::Railtie::Served
    {
      {Host: "localhost", Port: 3001} => "http://localhost:3001", {Host: "0.0.0.0", Port: 3001} => "http://localhost:3001",
      {Host: "::1", Port: 3001} => "http://localhost:3001", {Host: "192.0.2.7", Port: 80} => "http://192.0.2.7:80",
      {Host: "ssl://127.0.0.1:3443?key=k&cert=c", Port: 3000} => "https://localhost:3443", {Host: "/run/shop.sock", Port: 3000} => "http://localhost:3000"
    }.each do |options, url|
      served.options = options
      assert_equal "#{url}#{PATH}", settings.config.resource_identifier, options.inspect
      assert_equal "#{url}#{PATH}", Settings.new(Application.new(url: {host: "localhost", port: 3000})).config.resource_identifier
      assert_equal "https://localhost#{PATH}", Settings.new(Application.new(url: {host: "localhost", protocol: "https"})).config.resource_identifier
    end
    settings = settings()
    settings.config
    settings.serve_at("http://localhost:4000")
    assert_equal "http://localhost:4000#{PATH}", settings.config.resource_identifier
  ensure
    served.options = nil
  end

  test "without a hub development logs, but for the server, and the others raise; a setting counts more" do
    assert_equal :raise, settings.without_hub
    in_environment("development") { assert_equal %i[log raise], [settings.without_hub, settings.without_hub(serving: true)] }
    in_environment("production") { assert_equal :raise, settings.without_hub }
    assert_equal :log, settings(without_hub: "log").without_hub(serving: true)
    in_environment("development") { assert_equal :raise, settings(without_hub: :raise).without_hub }
    [true, "", "never", 1].each { |value| assert_match(/without_hub must be :raise or :log/, assert_raises(Hikyaku::ConfigError) { settings(without_hub: value).without_hub }.message) }
    refute settings(without_hub: :log).config.respond_to?(:without_hub)
  end

  test "where the hub is may be said until the configuration is read, and holds from then on" do
    in_environment("production") do
      application = Application.new
      settings = Settings.new(application)
      refute settings.remote?
      application.config.hikyaku.hub = "unix:/run/hub.sock"
      assert settings.remote?
      settings.config
      assert_equal "unix:/run/hub.sock", settings.hub
      application.config.hikyaku.hub = nil
      assert_equal "unix:/run/hub.sock", settings.hub
      in_environment("test") { refute settings.remote? }
    end
  end

  test "below relative_url_root the route is what is left of the path" do
    settings = Settings.new(Application.new(relative_url_root: "/app/"))
    assert_equal ["/app#{PATH}", PATH], [settings.config.path, settings.route_path]
  end

  test "the cookie has its prefix wherever https is spoken" do
    assert_equal "mercure_access_token", settings.config.cookie_name
    assert_equal "__Secure-mercure_access_token", settings(resource_identifier: "https://hub.example.com/hub").config.cookie_name
    in_environment("production") { assert_equal "__Secure-mercure_access_token", settings.config.cookie_name }
    assert_equal "mine", settings(cookie_name: "mine").config.cookie_name
  end

  test "tokens for a hub in another process are made for it" do
    in_environment("production") do
      assert_equal "http://127.0.0.1:3030#{PATH}", settings(hub: "http://127.0.0.1:3030#{PATH}").config.resource_identifier
      assert_equal "http://localhost#{PATH}", settings(hub: "unix:/run/hub.sock").config.resource_identifier
      assert_equal "https://example.com/hub", settings(hub: "unix:/run/hub.sock", resource_identifier: "https://example.com/hub").config.resource_identifier
    end
  end

  test "browsers are sent to a hub in another process only where its URL is known" do
    url = "http://127.0.0.1:3030#{PATH}"
    in_environment("production") do
      assert_nil settings(hub: "unix:/run/hub.sock").public_url
      assert_nil settings(hub: url).public_url
      assert_equal "https://hub.example.com/hub", settings(hub: "https://hub.example.com/hub").public_url
      assert_equal "https://example.com/hub", settings(hub: url, resource_identifier: "https://example.com/hub").public_url
    end
    in_environment("development") { assert_equal url, settings(hub: url).public_url }
  end

  test "tests talk to no hub" do
    refute settings(hub: "https://hub.example.com/hub").remote?
  end

  test "an empty address is none" do
    in_environment("production") { refute settings(hub: "").remote? }
  end

  test "how to reach the hub may be said more closely" do
    in_environment("production") do
      assert_raises(Hikyaku::ConfigError) { settings(hub: "http://hub:3030#{PATH}").connect }
      publisher = settings(hub: {url: "http://hub:3030#{PATH}", insecure: true, pool_size: 1}).connect
      assert_match(%r{http://hub:3030}, publisher.inspect)
    end
  ensure
    Hikyaku.reset
  end

  test "nothing shows a key" do
    settings = settings(publisher_key: "p" * 40)
    settings.config
    refute_match(/ppp|#{settings.config.subscriber_key}/, settings.inspect)
  end

  test "the hub of its own process listens where the application publishes" do
    require "hikyaku/rails/railtie/standalone"
    in_environment("production") do
      {
        "unix:/run/hub.sock" => ["unix:/run/hub.sock", PATH], "unix:/run/hub.sock:/hub" => ["unix:/run/hub.sock", "/hub"],
        "http://127.0.0.1:3030/hub" => ["127.0.0.1:3030", "/hub"], "http://localhost/hub" => ["localhost:80", "/hub"]
      }.each do |hub, expected|
        config = Hikyaku::Railtie::Standalone.new(settings(hub: hub)).config
        assert_equal expected, [config.listen, config.path], hub
      end
      [nil, "https://hub.example.com/hub"].each do |hub|
        assert_raises(Hikyaku::ConfigError) { Hikyaku::Railtie::Standalone.new(settings(hub: hub)).config }
      end
    end
  end
end
