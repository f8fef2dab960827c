# frozen_string_literal: true

require "test_helper"
require "hikyaku/config"

# The variables of the Go hub's image, as the compose files of Symfony, symfony-docker and API Platform have them.
class ConfigGoHubTest < Minitest::Test
  Config = Hikyaku::Config
  SECRET = "!ChangeThisMercureHubJWTSecretKey!"
  KEYS = {"MERCURE_PUBLISHER_JWT_KEY" => SECRET, "MERCURE_SUBSCRIBER_JWT_KEY" => SECRET}.freeze
  PASSWORD = "hunter2-and-more"

  def load(directives = nil, **env) = Config.load(env: KEYS.merge(env.transform_keys(&:to_s), {"MERCURE_EXTRA_DIRECTIVES" => directives.to_s}))

  def refused(...) = assert_raises(Hikyaku::ConfigError) { load(...) }.message

  test "Symfony's compose file" do
    config = load("cors_origins http://127.0.0.1:8000\n", SERVER_NAME: ":80")
    assert_equal [["http://127.0.0.1:8000"], "[::]:80", SECRET, SECRET], [config.cors_origins, config.listen, config.publisher_key, config.subscriber_key]
    refute config.anonymous
    assert_equal ["MERCURE_EXTRA_DIRECTIVES:1: cors_origins", "SERVER_NAME"], [config.origin(:cors_origins), config.origin(:listen)]
    assert(config.doubts.any? { |doubt| doubt.start_with?("MERCURE_PUBLISHER_JWT_KEY: tokens of Mercure 0.x are refused") })
  end

  test "symfony-docker's and API Platform's compose files" do
    config = load("demo", SERVER_NAME: "localhost, php:80", MERCURE_URL: "http://php/.well-known/mercure", MERCURE_PUBLIC_URL: "https://localhost",
      MERCURE_JWT_SECRET: PASSWORD, CADDY_SERVER_EXTRA_DIRECTIVES: "header ?Link x")
    assert_equal [true, true, true, "[::]:80"], [config.dev, config.anonymous, config.subscriptions, config.listen]
    doubts = config.doubts.join("\n")
    ["MERCURE_EXTRA_DIRECTIVES:1: demo: developer mode", "SERVER_NAME: localhost takes HTTPS", "MERCURE_URL, MERCURE_PUBLIC_URL and MERCURE_JWT_SECRET",
      "CADDY_SERVER_EXTRA_DIRECTIVES"].each { |part| assert_includes doubts, part }
    refute_includes doubts, PASSWORD
  end

  # [directives, setting, value]
  UNDERSTOOD = [
    ["anonymous", :anonymous, true], ["\n\n  subscriptions\r\n", :subscriptions, true], ["# anonymous\nsubscriptions # so", :anonymous, false],
    ["publisher_jwt abc HS512", :publisher_key, "abc"], ["publisher_jwt abc HS512", :publisher_alg, "HS512"], ["subscriber_jwt `a b`", :subscriber_key, "a b"],
    ["publisher_jwt \"a \\\"b\\\"\nc\"", :publisher_key, "a \"b\"\nc"], ["publisher_jwt {env.KEY_OF_TEST} {env.NONE}", :publisher_key, PASSWORD],
    ["cookie_name {$NONE:a}", :cookie_name, "a"], ["{$DIRECTIVE_OF_TEST}", :cookie_name, "from_elsewhere"],
    ["publisher_jwt {file./run/secrets/key}", :publisher_key, "file:/run/secrets/key"],
    ["publisher_jwks_url https://id.example/keys", :publisher_key, "https://id.example/keys"], ["subscriber_jwks_url file:///etc/keys.json", :subscriber_key, "file:/etc/keys.json"],
    ["cors_origins http://a.example https://b.example", :cors_origins, %w[http://a.example https://b.example]], ["cors_origins \\\n  http://a.example", :cors_origins, %w[http://a.example]],
    ["publish_origins *", :publish_origins, %w[*]], ["cookie_name mine", :cookie_name, "mine"],
    ["heartbeat 1m30s", :heartbeat, 90], ["heartbeat 0s", :heartbeat, 0], ["heartbeat 500ms", :heartbeat, 0.5], ["heartbeat 0", :heartbeat, 0],
    ["write_timeout 10m", :max_lifetime, 600], ["write_timeout 0s", :max_lifetime, 0], ["write_timeout 1d", :max_lifetime, 86_400],
    ["dispatch_timeout 5s", :write_timeout, 5], ["dispatch_timeout 10ms", :write_timeout, 1], ["dispatch_timeout 0s", :write_timeout, 60],
    ["max_request_body_size 512KB", :max_request_bytes, 512_000], ["max_request_body_size 2MiB", :max_request_bytes, 2_097_152], ["max_request_body_size 0", :max_request_bytes, 1_048_576],
    ["resource_identifier https://hub.example/.well-known/mercure", :resource_identifier, "https://hub.example/.well-known/mercure"],
    ["protocol_version_compatibility 8", :legacy, true], ["protocol_version_compatibility 7", :legacy, true],
    ["trusted_issuers https://a.example", :issuer, "https://a.example"],
    ["transport local", :storage, nil], ["transport bolt { path /data/mercure.db }", :storage, "/data/mercure.db.hikyaku"], ["transport bolt {\n path x.db\n}", :storage, "x.db.hikyaku"],
    ["transport bolt", :storage, "mercure.db.hikyaku"], ["transport_url bolt:///data/m.db", :storage, "/data/m.db.hikyaku"],
    ["demo", :dev, true], ["playground", :cors_origins, %w[*]], ["playground\ncors_origins http://a.example", :cors_origins, %w[http://a.example]], ["playground", :cookie_name, "mercure_access_token"],
    ["ui", :dev, false], ["debugger", :dev, false]
  ].freeze

  UNDERSTOOD.each_with_index do |(directives, setting, value), index|
    test "directive #{index} is understood: #{directives[0, 40].inspect}" do
      result = load(directives, KEY_OF_TEST: PASSWORD, DIRECTIVE_OF_TEST: "anonymous\ncookie_name from_elsewhere").public_send(setting)
      value.nil? ? assert_nil(result) : assert_equal(value, result)
    end
  end

  # [directives, line, parts of the message]
  REFUSED = [
    ["anonymous\ncors_origin http://a.example", "2: cors_origin: unknown directive", "did you mean cors_origins?"], ["nonsense", "1: nonsense: unknown directive"],
    ["\n\nheartbeat soon", "3: heartbeat: expected a duration", "soon"], ["heartbeat", "1: heartbeat: expected one value"], ["heartbeat 2h", "1: heartbeat:", "from 0 to 3600"],
    ["heartbeat 1s 2s", "1: heartbeat: expected one value"], ["anonymous yes", "1: anonymous:", "switch"], ["cors_origins", "1: cors_origins:"],
    ["cors_origins http://a.example/", "1: cors_origins: expected an origin"], ["cookie_name \"a b\"", "1: cookie_name:"], ["max_request_body_size much", "1: max_request_body_size:"],
    ["publisher_jwt", "1: publisher_jwt: expected a key"], ["publisher_jwt {env.NONE}", "1: publisher_jwt: expected a key"], ["publisher_jwt a none", "1: publisher_jwt: expected HS256"],
    ["publisher_jwks_url ldap://x", "1: publisher_jwks_url: expected file:PATH"], ["protocol_version_compatibility 6", "1: protocol_version_compatibility: expected 7 or 8"],
    ["transport redis {\n url redis://:#{PASSWORD}@redis\n}", "1: transport: the transport redis"], ["transport", "1: transport:"], ["transport redis://:#{PASSWORD}@redis", "1: transport:"],
    ["transport_url postgres://me:#{PASSWORD}@db/x", "1: transport_url: the transport postgres"], ["transport_url x", "1: transport_url:"],
    ["issuer a", "1: issuer: expected the issuer's identifier, and a block"], ["issuer a {\n}", "1: issuer: a: expected publisher_key"],
    ["issuer a {\n nobody\n}", "2: nobody: expected publisher"], ["issuer a {\n publisher {\n jwt\n }\n}", "3: jwt: expected a value"],
    ["issuer a {\n publisher {\n secret #{PASSWORD}\n }\n}", "3: secret: expected jwt or jwks_uri"], ["issuer a {\n publisher {\n jwks_uri https://a.example/k RS256 ES256\n }\n}", "3: jwks_uri:", "one algorithm"],
    ["anonymous {", "1: a { without its }"], ["anonymous\n}", "2: a } without its {"], ["{", "1: a { without a directive"], ["cookie_name \"a", "1: a quote without its end"],
    ["cookie_name `a", "1: a quote without its end"], ["publisher_jwt <<KEY\n#{PASSWORD}\nKEY", "1: here-documents"], ["cookie_name \\", "1: a backslash"],
    ["issuer a {\n" * 10, "6: nested too deeply"], ["publisher_jwt a\n#{PASSWORD}!", "2: unknown directive"], ["x" * 70_000, "1: larger than"]
  ].freeze

  REFUSED.each_with_index do |(directives, start, *parts), index|
    test "bad directives #{index} are refused with their line: #{directives[0, 40].inspect}" do
      message = refused(directives)
      assert message.start_with?("MERCURE_EXTRA_DIRECTIVES:#{start}"), message
      parts.each { |part| assert_includes message, part }
      refute_includes message, PASSWORD
      refute_includes message, "\n"
    end
  end

  test "issuers, each with its own keys" do
    config = load("issuer https://a.example {\n authorization_server\n publisher {\n jwt abc HS512\n }\n subscriber {\n jwks_uri https://a.example/keys RS256\n }\n}\nissuer b {\n subscriber {\n jwt def\n }\n}\n")
    own, first, second = config.issuer_list
    assert_equal "hikyaku", own.issuer
    assert_equal ["https://a.example", "abc", "HS512", "https://a.example/keys", "RS256"], [first.issuer, first.publisher_key, first.publisher_alg, first.subscriber_key, first.subscriber_alg]
    assert_equal ["b", nil, "def"], [second.issuer, second.publisher_key, second.subscriber_key]
    assert(config.doubts.any? { |doubt| doubt.start_with?("MERCURE_EXTRA_DIRECTIVES:2: authorization_server") })
  end

  test "MERCURE_TRUSTED_ISSUERS names who signs with the keys" do
    assert_equal ["https://a.example"], load(MERCURE_TRUSTED_ISSUERS: "https://a.example").issuer_list.map(&:issuer)
    config = load(MERCURE_TRUSTED_ISSUERS: "https://a.example, https://b.example")
    assert_equal [["https://a.example", SECRET], ["https://b.example", SECRET]], config.issuer_list.map { |issuer| [issuer.issuer, issuer.subscriber_key] }
    assert_equal %w[mine], load(MERCURE_TRUSTED_ISSUERS: "https://a.example https://b.example", HIKYAKU_ISSUER: "mine").issuer_list.map(&:issuer)
    refute(load(MERCURE_TRUSTED_ISSUERS: "https://a.example").doubts.any? { |doubt| doubt.include?("0.x") })
  end

  # [value, where it listens, what is doubted]
  SITES = [
    [":80", "[::]:80", nil], [":8080", "[::]:8080", nil], ["http://hub.example", "[::]:80", nil], ["http://hub.example:8000", "[::]:8000", nil], ["php:80", "[::]:80", nil],
    ["http://:3000", "[::]:3000", nil], ["hub.example", nil, "hub.example takes HTTPS"], ["localhost:8080", nil, "takes HTTPS"], [":443", nil, "takes HTTPS"],
    ["https://hub.example", nil, "takes HTTPS"], ["hub.example, http://hub.example", "[::]:80", "hub.example takes HTTPS"], [":80 :81", "[::]:80", "not on 81"],
    ["a:b:c", nil, "a:b:c"], ["http://[::1]:81", "[::]:81", nil], [":99999", nil, ":99999"]
  ].freeze

  test "SERVER_NAME says where to listen, where Caddy would without TLS" do
    SITES.each do |name, listen, doubt|
      config = load(SERVER_NAME: name)
      assert_equal listen || "127.0.0.1:3030", config.listen, name
      found = config.doubts.grep(/\ASERVER_NAME/)
      doubt ? assert_includes(found.join, doubt) : assert_empty(found, name)
    end
  end

  test "MERCURE_TRANSPORT_URL becomes storage, or stops the start without a word of its password" do
    assert_equal "/data/mercure.db.hikyaku", load(MERCURE_TRANSPORT_URL: "bolt:///data/mercure.db?size=100&cleanup_frequency=0.5").storage
    assert_equal "mercure.db.hikyaku", load(MERCURE_TRANSPORT_URL: "bolt://mercure.db").storage
    assert_equal "mine", load(MERCURE_TRANSPORT_URL: "bolt://mercure.db", HIKYAKU_STORAGE: "mine").storage
    assert_nil load(MERCURE_TRANSPORT_URL: "local://local").storage
    assert_equal "directive.db.hikyaku", load("transport bolt { path directive.db }", MERCURE_TRANSPORT_URL: "redis://x").storage
    doubts = load(MERCURE_TRANSPORT_URL: "bolt:///data/mercure.db?size=100&bucket_name=x&no=1").doubts.join("\n")
    ["kept in the folder /data/mercure.db.hikyaku", "size counts events", "bucket_name has no counterpart", "no is not an option"].each { |part| assert_includes doubts, part }
    %w[redis postgres postgresql kafka pulsar nats].each do |scheme|
      message = refused(MERCURE_TRANSPORT_URL: "#{scheme}://me:#{PASSWORD}@host:1/x?password=#{PASSWORD}")
      assert message.start_with?("MERCURE_TRANSPORT_URL: the transport #{scheme} "), message
      refute_includes message, PASSWORD
    end
    assert_includes refused(MERCURE_TRANSPORT_URL: PASSWORD), "bolt://PATH"
  end

  test "HIKYAKU_ counts more than a directive, and that more than a variable of its own" do
    config = load("publisher_jwt directive\nheartbeat 5s\ncookie_name directive", MERCURE_PUBLISHER_JWT_KEY: "variable", HIKYAKU_HEARTBEAT: "6")
    assert_equal ["directive", 6, "directive"], [config.publisher_key, config.heartbeat, config.cookie_name]
    assert_equal "https://id.example/keys", load(MERCURE_PUBLISHER_JWKS_URL: "https://id.example/keys", MERCURE_PUBLISHER_JWT_KEY: "").publisher_key
  end

  test "every other variable is named, never its value; what others made is not" do
    config = load(MERCURE_PUBLISHER_KEY: PASSWORD, MERCURE_ANONYMOUS: PASSWORD, MERCURE_LICENSE: PASSWORD, MERCURE_SOMETHING: PASSWORD, HIKYAKU_SOMETHING: "\xFF", GLOBAL_OPTIONS: PASSWORD,
      MERCURE_PORT: "tcp://10.0.0.1:80", MERCURE_SERVICE_HOST: "10.0.0.1", MERCURE_PORT_80_TCP_ADDR: "10.0.0.1", MERCURE_EMPTY: " ")
    assert_includes config.doubts, "MERCURE_PUBLISHER_KEY is not a setting; did you mean HIKYAKU_PUBLISHER_KEY?"
    assert_includes config.doubts, "MERCURE_ANONYMOUS is not a setting; did you mean HIKYAKU_ANONYMOUS?"
    assert_includes config.doubts, "MERCURE_SOMETHING is not a setting, and is not read"
    assert_includes config.doubts, "HIKYAKU_SOMETHING is not a setting, and is not read"
    ["MERCURE_LICENSE", "GLOBAL_OPTIONS"].each { |name| assert(config.doubts.any? { |doubt| doubt.start_with?(name) }, name) }
    refute_includes config.doubts.join, PASSWORD
    assert_empty config.doubts.grep(/PORT|SERVICE|EMPTY/)
  end

  test "what has no counterpart is named" do
    doubts = load("topic_selector_cache 1\nsubscriber_list_cache_size 2\nname x\npublic_urls https://a.example\nui\ndispatch_timeout 0s\nmax_request_body_size 0").doubts
    %w[topic_selector_cache subscriber_list_cache_size name public_urls ui dispatch_timeout max_request_body_size].each.with_index(1) do |name, line|
      assert(doubts.any? { |doubt| doubt.start_with?("MERCURE_EXTRA_DIRECTIVES:#{line}: #{name}: ") }, name)
    end
  end

  test "developer mode without keys stays at home, whatever says where to listen" do
    message = assert_raises(Hikyaku::ConfigError) { Config.load(env: {"MERCURE_EXTRA_DIRECTIVES" => "playground", "SERVER_NAME" => ":80"}) }.message
    assert message.start_with?("SERVER_NAME: developer mode"), message
  end
end
