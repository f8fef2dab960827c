# frozen_string_literal: true

require "test_helper"
require "hikyaku/config"
require "stringio"
require "pp"

class ConfigTest < Minitest::Test
  Config = Hikyaku::Config
  SECRET = "s3cret-of-the-tests-that-is-long-enough"

  def keys = {publisher_key: SECRET, subscriber_key: SECRET}

  def refused(...)
    message = assert_raises(Hikyaku::ConfigError) { Config.new(...) }.message
    refute_includes message, "\n"
    message
  end

  test "a configuration with keys has the documented defaults" do
    config = Config.new(**keys)
    assert_equal "127.0.0.1:3030", config.listen
    assert_equal "/.well-known/mercure", config.path
    assert_equal "c", config.engine
    assert_equal 1_000, config.max_connections_per_address
    assert_equal 1_048_576, config.max_request_bytes
    assert_equal "__Secure-mercure_access_token", config.cookie_name
    refute config.dev?
    refute config.anonymous?
    refute config.legacy?
    assert_nil config.max_connections
  end

  test "a configuration is frozen, and so are its values" do
    config = Config.new(**keys, cors_origins: ["https://a.example"])
    assert config.frozen?
    assert config.listen.frozen?
    assert config.cors_origins.frozen?
    assert config.cors_origins.all?(&:frozen?)
  end

  test "what the caller gave is not changed or frozen" do
    origin = +"https://a.example"
    origins = [origin]
    Config.new(**keys, cors_origins: origins)
    refute origin.frozen?
    refute origins.frozen?
  end

  test "a hub that nobody could use is refused with what to do" do
    assert_includes refused, "--publisher-key"
    assert_includes refused, "--anonymous"
    assert_includes refused, "--dev"
    assert Config.new(anonymous: true)
    assert Config.new(jwks: "https://id.example/keys")
    assert Config.new(issuers: [{issuer: "x", publisher_key: SECRET}])
  end

  test "nil stands for the default" do
    assert_equal 15, Config.new(**keys, heartbeat: nil).heartbeat
  end

  test "unknown settings are refused, with what was probably meant" do
    assert_equal "unknown setting max_topic; did you mean max_topics?", refused(max_topic: 1, **keys)
    assert_equal "unknown setting zzzzzz", refused(zzzzzz: 1, **keys)
    {dv: "dev", pth: "path", lag: "alg", port: "listen", host: "listen", key: "publisher_key", log: "log_level", dir: "storage"}.each { |name, meant| assert_includes refused(name => 1, **keys), "did you mean #{meant}?" }
    # The file knows it by this name, Ruby does not.
    assert_includes refused(cors_origin: "*", **keys), "did you mean cors_origins?"
  end

  # [setting, value, what the message must hold]
  BAD = [
    [:listen, "127.0.0.1", "HOST:PORT"], [:listen, "host:99999", "HOST:PORT"], [:listen, "1.2.3.4:80:90", "HOST:PORT"],
    [:listen, "unix:", "unix:PATH"], [:listen, "unix:/#{"x" * 107}", "unix:PATH"], [:listen, "http://x:1", "HOST:PORT"],
    [:listen, "a b:80", "HOST:PORT"], [:listen, "::1:80", "HOST:PORT"], [:listen, "\u0000:1", "HOST:PORT"], [:listen, -1, "HOST:PORT"],
    [:path, "", "a path"], [:path, "/", "a path"], [:path, "hub", "a path"], [:path, "/a//b", "a path"], [:path, "/a/", "a path"],
    [:path, "/a/../b", "a path"], [:path, "/./b", "a path"], [:path, "/a/..", "a path"], [:path, "/a?b", "a path"], [:path, "/a%2Fb", "a path"], [:path, "/a b", "a path"],
    [:path, "/a\nb", "a path"],
    [:engine, "rust", "c or ruby"], [:engine, "", "c or ruby"], [:dev, "maybe", "true or false"], [:dev, 2, "true or false"],
    [:threads, 0, "from 1 to 1000"], [:threads, "5.5", "whole number"], [:threads, 5.0, "whole number"], [:threads, "-1", "whole number"],
    [:threads, "1e3", "whole number"], [:threads, "0x10", "whole number"], [:threads, [1], "one value"], [:threads, {}, "whole number"],
    [:threads, "9" * 400, "whole number"],
    [:issuer, "", "text"], [:issuer, "a\nb", "text"], [:issuer, ["a"], "one value"], [:issuer, "x" * 5000, "text"],
    [:publisher_key, "", "a secret"], [:publisher_key, "file:", "a secret"], [:publisher_key, 42, "a secret"],
    [:publisher_key, "[hidden]", "the key itself"],
    [:alg, "none", "HS256"], [:alg, "HS1", "HS256"], [:publisher_alg, "None", "HS256"],
    [:jwks, "http://id.example/keys", "https URL"], [:jwks, "/keys.json", "file:PATH"], [:jwks, "https:///x", "https URL"],
    [:issuers, "x", "a mapping"], [:issuers, [1], "a mapping"], [:issuers, [{}], "the key issuer"], [:issuers, {issuer: "x"}, "a list"],
    [:issuers, [{issuer: "x"}], "publisher_key"], [:issuers, [{issuer: "x", key: "y"}], "not key"],
    [:issuers, [{issuer: "x", publisher_key: SECRET, alg: "none"}], "alg: expected HS256"],
    [:resource_identifier, "hub", "absolute URL"], [:resource_identifier, "https://a#b", "absolute URL"],
    [:resource_identifier, "https://a b", "absolute URL"], [:resource_identifier, "/x", "absolute URL"], [:resource_identifier, "1:x", "absolute URL"],
    [:cookie_name, "a b", "cookie"], [:cookie_name, "a;b", "cookie"], [:cookie_name, "a=b", "cookie"], [:cookie_name, "", "cookie"],
    [:cors_origins, "https://a.example/", "origin"], [:cors_origins, "example.com", "origin"], [:cors_origins, ["*", "x y"], "origin"],
    [:publish_origins, "https://a.example/path", "origin"], [:publish_origins, "null", "origin"],
    [:trusted_proxies, "300.0.0.1", "IP address"], [:trusted_proxies, "10.0.0.0/33", "IP address"], [:trusted_proxies, "", "IP address"],
    [:trusted_proxies, "proxy.example", "IP address"],
    [:heartbeat, -1, "from 0 to 3600"], [:heartbeat, "15s", "number of seconds"], [:heartbeat, Float::NAN, "number of seconds"],
    [:heartbeat, Float::INFINITY, "number of seconds"], [:heartbeat, "1e2", "number of seconds"],
    [:write_timeout, 0, "from 1"], [:max_lifetime, "∞", "number of seconds"],
    [:history, "64Q", "K, M and G"], [:history, "1K", "from 64K"], [:history, 1.5, "number of bytes"], [:history, "-1M", "number of bytes"],
    [:history, "9" * 30, "number of bytes"],
    [:slow_readers, "close", "gap=PATTERN"], [:slow_readers, "drop=*", "gap=PATTERN"], [:slow_readers, "close=", "gap=PATTERN"],
    [:slow_readers, "close=a b", "gap=PATTERN"], [:slow_readers, %w[close *], "gap=PATTERN"],
    [:max_connections, 0, "whole number"], [:max_token_bytes, 1, "from 64"], [:log_level, "trace", "debug, info, warn or error"],
    [:log_format, "xml", "text or json"], [:issuer, "\xFF".b, "UTF-8"]
  ].freeze

  BAD.each_with_index do |(name, value, expected), index|
    test "bad value #{index} of #{name} is refused with its name and what is expected" do
      message = refused(**keys, name => value)
      assert_match(/\A#{name}: (.+: )?expected/, message)
      assert_includes message, expected
      assert_operator message.size, :<, 400
    end
  end

  # [setting, value, result]
  GOOD = [
    [:listen, "3031", "127.0.0.1:3031"], [:listen, 3031, "127.0.0.1:3031"], [:listen, ":3031", "[::]:3031"], [:listen, "[::1]:80", "[::1]:80"],
    [:listen, "LocalHost:0", "localhost:0"], [:listen, "unix:/run/hub.sock", "unix:/run/hub.sock"], [:listen, "unix:///run/hub.sock", "unix:/run/hub.sock"],
    [:listen, "unix:hub.sock", "unix:hub.sock"], [:listen, "0.0.0.0:80", "0.0.0.0:80"],
    [:path, "/hub", "/hub"], [:path, "/a/.b/c...", "/a/.b/c..."],
    [:anonymous, "yes", true], [:anonymous, "OFF", false], [:anonymous, 1, true], [:anonymous, " true ", true],
    [:heartbeat, "0.5", 0.5], [:heartbeat, 0, 0], [:max_lifetime, "600", 600],
    [:history, "1m", 1_048_576], [:history, "64 KiB", 65_536], [:history, 100_000, 100_000], [:history, "2GB", 2_147_483_648],
    [:alg, "eddsa", "EdDSA"], [:alg, "es256", "ES256"],
    [:cors_origins, "*", ["*"]], [:cors_origins, %w[http://localhost:8080 https://a.example], %w[http://localhost:8080 https://a.example]],
    [:trusted_proxies, ["10.0.0.0/8", "::1"], ["10.0.0.0/8", "::1"]],
    [:slow_readers, ["close=https://a.example/x=y", "gap=*"], [["close", "https://a.example/x=y"], ["gap", "*"]]],
    [:slow_readers, [[:close, "*"]], [["close", "*"]]],
    [:jwks, "http://127.0.0.1:8080/keys", "http://127.0.0.1:8080/keys"], [:jwks, "file:keys.json", "file:keys.json"],
    [:resource_identifier, "urn:hub:1", "urn:hub:1"], [:issuer, :app, "app"], [:log_level, "DEBUG", "debug"]
  ].freeze

  GOOD.each_with_index do |(name, value, result), index|
    test "good value #{index} of #{name} is understood" do
      assert_equal result, Config.new(**keys, name => value).public_send(name)
    end
  end

  test "developer mode brings anonymous, subscriptions, legacy and a secret, which explicit settings beat" do
    config = Config.new(dev: true)
    assert config.anonymous? && config.subscriptions? && config.legacy?
    assert_equal "!ChangeThisMercureHubJWTSecretKey!", config.publisher_key
    assert_equal config.publisher_key, config.subscriber_key
    assert config.development_secret?

    config = Config.new(dev: true, anonymous: false, **keys)
    refute config.anonymous?
    assert config.legacy?
    refute config.development_secret?
    assert_equal SECRET, config.publisher_key
  end

  test "developer mode does not add the known secret beside a key that was given" do
    [{publisher_key: SECRET}, {jwks: "https://id.example/keys"}, {issuers: [{issuer: "x", publisher_key: SECRET}]}].each do |settings|
      assert_nil Config.new(dev: true, **settings).subscriber_key
    end
  end

  test "the known secret never leaves this machine" do
    ["0.0.0.0:80", ":3030", "192.168.1.2:80", "example.com:80", "[2001:db8::1]:80"].each do |listen|
      assert_includes refused(dev: true, listen: listen), "a secret that everybody knows"
      assert Config.new(dev: true, listen: listen, **keys)
    end
    ["127.0.0.2:80", "localhost:80", "[::1]:80", "unix:/tmp/x.sock", "3030"].each { |listen| assert Config.new(dev: true, listen: listen) }
  end

  test "section Token Validation: the resource identifier is the hub's URL unless told" do
    {
      "127.0.0.1:3030" => "http://127.0.0.1:3030/hub", "[::1]:80" => "http://[::1]/hub", ":8080" => "http://localhost:8080/hub",
      "0.0.0.0:80" => "http://localhost/hub", "unix:/run/hub.sock" => "http://localhost/hub"
    }.each do |listen, url|
      config = Config.new(listen: listen, path: "/hub", **keys)
      assert_equal url, config.resource_identifier
      assert_equal url, config.hub_url
    end
    config = Config.new(resource_identifier: "https://example.com/hub", path: "/hub", **keys)
    assert_equal "https://example.com/hub", config.hub_url
    assert_empty config.doubts
    config = Config.new(resource_identifier: "urn:hub:1", **keys)
    assert_equal "urn:hub:1", config.resource_identifier
    assert_equal "http://127.0.0.1:3030/.well-known/mercure", config.hub_url
  end

  test "the hub's URL ends with its path, whatever identifies it" do
    {"https://example.com" => nil, "https://example.com/" => nil, "https://example.com/hub" => "not the path", "HTTPS://example.com/hub?x=/y" => "not the path"}.each do |identifier, doubt|
      config = Config.new(resource_identifier: identifier, **keys)
      assert_equal identifier, config.resource_identifier
      assert_equal "https://example.com/.well-known/mercure", config.hub_url.downcase
      doubt ? assert_includes(config.doubts.first, doubt) : assert_empty(config.doubts)
    end
  end

  test "section Token Validation: keys belong to one issuer each" do
    config = Config.new(**keys, issuer: "https://app.example", alg: "HS512", issuers: [{"issuer" => "https://id.example", "jwks" => "https://id.example/keys", "alg" => "ES256"}])
    own, other = config.issuer_list
    assert_equal ["https://app.example", "HS512", SECRET, SECRET, nil], [own.issuer, own.alg, own.publisher_key, own.subscriber_key, own.jwks]
    assert_equal ["https://id.example", "ES256", nil, nil, "https://id.example/keys"], [other.issuer, other.alg, other.publisher_key, other.subscriber_key, other.jwks]
    assert_includes refused(**keys, issuer: "x", issuers: [{issuer: "x", jwks: "https://id.example/keys"}]), "issuer x is given twice"
    # Without a key of its own, `issuer` is nobody.
    assert_equal 1, Config.new(issuer: "x", issuers: [{issuer: "x", jwks: "https://id.example/keys"}]).issuer_list.size
  end

  test "an issuer's algorithm may differ by role" do
    issuer = Config.new(**keys, alg: "HS512", subscriber_alg: "HS384").issuer_list.first
    assert_equal %w[HS512 HS384], [issuer.publisher_alg, issuer.subscriber_alg]
    assert_nil Config.new(**keys).issuer_list.first.publisher_alg
  end

  test "secrets are in no text that is made of a configuration" do
    config = Config.new(**keys, issuers: [{issuer: "other", publisher_key: "another #{SECRET}"}])
    [config.inspect, config.to_s, config.to_h.inspect, config.issuer_list.inspect, config.pretty_inspect, config.issuer_list.first.to_s,
      config.issuers.pretty_inspect, config.to_h[:issuers].to_s].each do |text|
      refute_includes text, SECRET
      assert_includes text, "[hidden]"
    end
    assert_equal SECRET, config.publisher_key
  end

  test "where a key is kept is no secret" do
    config = Config.new(publisher_key: "file:/etc/hub.pem", subscriber_key: "https://id.example/keys")
    assert_equal "file:/etc/hub.pem", config.to_h[:publisher_key]
    assert_equal "https://id.example/keys", config.to_h[:subscriber_key]
  end

  test "an error about a key does not repeat it" do
    refute_includes refused(publisher_key: ["#{SECRET} twice"]), SECRET
    refute_includes refused(publisher_key: "#{SECRET}\xFF"), SECRET
    refute_includes refused(issuers: [{issuer: "x", publisher_key: [SECRET]}]), SECRET
    refute_includes refused(issuers: [{issuer: "x", alg: "none", publisher_key: SECRET}]), SECRET
  end

  test "with changes settings and keeps the others" do
    config = Config.new(**keys, heartbeat: 7).with(listen: "127.0.0.1:4000", max_connections: 10)
    assert_equal ["127.0.0.1:4000", 10, 7], [config.listen, config.max_connections, config.heartbeat]
    assert_equal "http://127.0.0.1:4000/.well-known/mercure", config.hub_url
    assert_raises(Hikyaku::ConfigError) { config.with(heartbeat: "x") }
  end

  test "what works but is probably not meant is said" do
    assert_empty Config.new(**keys).doubts
    assert_empty Config.new(dev: true).doubts
    assert_includes Config.new(publisher_key: SECRET).doubts.first, "nobody can subscribe"
    assert_includes Config.new(subscriber_key: SECRET).doubts.first, "nobody can publish"
    assert_includes Config.new(anonymous: true).doubts.first, "nobody can publish"
    assert_includes Config.new(**keys, listen: "0.0.0.0:80").doubts.first, "resource_identifier"
    known = {publisher_key: "!ChangeThisMercureHubJWTSecretKey!", subscriber_key: SECRET}
    assert_includes Config.new(**known, listen: "0.0.0.0:80", resource_identifier: "https://a.example").doubts.first, "everybody knows"
  end

  test "files with secrets that everybody can read are named" do
    Dir.mktmpdir do |folder|
      path = ->(name, text) { File.join(folder, name).tap { |file| File.write(file, text, perm: 0o644) } }
      secret = path.call("secret", SECRET)
      pem = path.call("private.pem", "-----BEGIN PRIVATE KEY-----\nMC4\n-----END PRIVATE KEY-----\n")
      set = path.call("set.json", %({"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}))
      public = path.call("public.pem", "-----BEGIN PUBLIC KEY-----\nMC4\n-----END PUBLIC KEY-----\n")
      public_set = path.call("public.json", %({"keys": [{"kty": "EC", "x": "a", "y": "b"}]}))
      doubts = ->(**settings) { Config.new(anonymous: true, publisher_key: SECRET, **settings).doubts.grep(/chmod/) }
      [secret, pem, set].each do |file|
        doubt = "#{file} holds a secret, and can be read by every user of this machine (mode 0644): run chmod o-rwx #{file}"
        assert_equal [doubt], doubts.call(subscriber_key: "file:#{file}")
        File.chmod(0o640, file)
        assert_empty doubts.call(subscriber_key: "file:#{file}")
      end
      [public, public_set, "/does/not/exist"].each { |file| assert_empty doubts.call(subscriber_key: "file:#{file}") }

      yaml = path.call("hub.yml", "publisher_key: #{SECRET}\nanonymous: true\n")
      assert_match(/\A#{yaml} holds a secret/, Config.load(file: yaml).doubts.first)
      assert_match(/\A#{yaml} holds a secret/, Config.load(file: yaml, serving: :broker).doubts.first)
      File.chmod(0o600, yaml)
      assert_empty Config.load(file: yaml).doubts.grep(/chmod/)
      harmless = path.call("harmless.yml", "publisher_key: file:#{secret}\nanonymous: true\n")
      assert_empty Config.load(file: harmless).doubts.grep(/chmod/)
    end
  end

  test "a broker listens beyond this machine only when clients must say who they are" do
    broker = {broker: true, anonymous: true}
    message = refused(broker_listen: "0.0.0.0:4040", **broker)
    assert_includes message, "--broker-secret-file"
    assert_includes message, "127.0.0.1"
    assert Config.new(broker_listen: ["127.0.0.1:4040", "[::1]:4040", "unix:/tmp/b.sock"], **broker)
    assert Config.new(broker_listen: ":4040", broker_secret_file: "/run/secret", **broker)
    assert Config.new(broker_listen: ":4040", jwks: "https://id.example/keys", **broker)
    assert_includes refused(broker_listen: ":4040", broker: true, dev: true), "--broker-secret-file"
  end

  test "a broker's clients must say who they are where there is a secret or an issuer, but the secret that everybody knows" do
    refute Config.new(broker: true, anonymous: true).broker_authenticates?
    refute Config.new(broker: true, dev: true).broker_authenticates?
    assert Config.new(broker: true, dev: true, broker_secret_file: "/run/secret").broker_authenticates?
    assert Config.new(broker: true, **keys).broker_authenticates?
  end

  test "a broker has no level but memory without storage" do
    assert_includes refused(broker: true, anonymous: true, broker_level: "synced"), "--storage DIR"
    assert Config.new(broker: true, anonymous: true, broker_level: "memory")
    assert Config.new(broker: true, anonymous: true, broker_level: "synced", storage: "/var/lib/hikyaku")
    assert_includes refused(broker: true, anonymous: true, broker_lease: 60, broker_max_lease: 30), "--broker-max-lease"
  end

  test "a broker without a hub needs nothing that a hub needs, and speaks of its flags as they were written" do
    assert Config.load(serving: :broker)
    message = assert_raises(Hikyaku::ConfigError) do
      Config.load(serving: :broker, flags: {broker_level: "synced"}) { |setting| setting.flags.first.delete_prefix("broker-") }
    end.message
    assert message.start_with?("--level: "), message
    message = assert_raises(Hikyaku::ConfigError) do
      Config.load(serving: :broker, flags: {broker_listen: [":1"]}) { |setting| setting.flags.first.delete_prefix("broker-") }
    end.message
    assert_includes message, "give --secret-file"
  end
end
