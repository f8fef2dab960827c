# frozen_string_literal: true

require "test_helper"
require "hikyaku/config"
require "tempfile"

class ConfigSourcesTest < Minitest::Test
  Config = Hikyaku::Config
  SECRET = "s3cret-of-the-tests-that-is-long-enough"

  def with_file(text)
    Tempfile.create(["hub", ".yml"]) do |file|
      file.write(text)
      file.close
      yield file.path
    end
  end

  def load(text = nil, flags: {}, env: {}, **options)
    return Config.load(flags: flags, env: env, **options) unless text
    with_file(text) { |path| Config.load(flags: flags, env: env, file: path, **options) }
  end

  # The message, with the file called FILE.
  def refused(text = nil, **options)
    message = nil
    with_file(text || "") do |path|
      message = assert_raises(Hikyaku::ConfigError) { Config.load(file: (path if text), **options) }.message.gsub(path, "FILE")
    end
    refute_includes message, "\n"
    message
  end

  test "flags count more than the environment, that more than the file, that more than defaults" do
    file = "anonymous: true\nheartbeat: 1\nwrite_timeout: 1\nmax_lifetime: 1\n"
    config = load(file, flags: {heartbeat: "3"}, env: {"HIKYAKU_HEARTBEAT" => "2", "HIKYAKU_WRITE_TIMEOUT" => "2"})
    assert_equal [3, 2, 1, 67_108_864], [config.heartbeat, config.write_timeout, config.max_lifetime, config.history]
    assert_equal "--heartbeat", config.origin(:heartbeat)
    assert_equal "HIKYAKU_WRITE_TIMEOUT", config.origin(:write_timeout)
    assert_match(/hub.*\.yml:4: max_lifetime\z/, config.origin(:max_lifetime))
    assert_equal "default", config.origin(:history)
  end

  test "a switch that is turned off by a flag beats one that is turned on elsewhere" do
    config = load("anonymous: true", flags: {anonymous: false, dev: true}, env: {"HIKYAKU_LEGACY" => "0"})
    refute config.anonymous?
    refute config.legacy?
    assert config.subscriptions?
    assert_equal "--no-anonymous", config.origin(:anonymous)
    assert_equal "--dev", config.origin(:subscriptions)
  end

  test "Mercure's own variables are understood, and HIKYAKU's count more" do
    env = {
      "MERCURE_PUBLISHER_JWT_KEY" => "pub", "MERCURE_PUBLISHER_JWT_ALG" => "HS512",
      "MERCURE_SUBSCRIBER_JWT_KEY" => "sub", "MERCURE_SUBSCRIBER_JWT_ALG" => "HS384"
    }
    issuer = load(env: env).issuer_list.first
    assert_equal %w[pub sub HS512 HS384], [issuer.publisher_key, issuer.subscriber_key, issuer.publisher_alg, issuer.subscriber_alg]
    config = load(env: env.merge("HIKYAKU_PUBLISHER_KEY" => "mine"))
    assert_equal %w[mine sub], [config.publisher_key, config.subscriber_key]
    assert_equal "HIKYAKU_PUBLISHER_KEY", config.origin(:publisher_key)
    assert_equal "flag", load(env: env, flags: {publisher_key: "flag"}).publisher_key
    assert_equal "pub", load("publisher_key: file", env: env).publisher_key
  end

  test "alg from a stronger source beats a role's alg from a weaker one" do
    env = {"MERCURE_PUBLISHER_JWT_KEY" => "pub", "MERCURE_PUBLISHER_JWT_ALG" => "HS512"}
    assert_equal "HS384", load(env: env, flags: {alg: "HS384"}).issuer_list.first.publisher_alg
    assert_equal "HS512", load("alg: HS384", env: env).issuer_list.first.publisher_alg
    assert_equal "HS512", load(env: env.merge("HIKYAKU_ALG" => "HS384")).issuer_list.first.publisher_alg
  end

  test "a variable that is set to nothing is not set" do
    env = {"HIKYAKU_PUBLISHER_KEY" => "", "MERCURE_PUBLISHER_JWT_KEY" => "pub", "HIKYAKU_HEARTBEAT" => "  ", "HIKYAKU_CONFIG" => ""}
    config = load(env: env)
    assert_equal "pub", config.publisher_key
    assert_equal 15, config.heartbeat
  end

  test "lists are separated by commas or spaces in variables, and are lists in the file" do
    env = {"HIKYAKU_ANONYMOUS" => "1", "HIKYAKU_CORS_ORIGINS" => "https://a.example, https://b.example\nhttps://c.example"}
    assert_equal %w[https://a.example https://b.example https://c.example], load(env: env).cors_origins
    assert_equal %w[https://a.example], load(env: {"HIKYAKU_ANONYMOUS" => "1", "HIKYAKU_CORS_ORIGIN" => "https://a.example"}).cors_origins
    file = "anonymous: on\ncors_origins:\n  - https://a.example\n  - https://b.example\nslow_reader: close=*\n"
    config = load(file)
    assert_equal %w[https://a.example https://b.example], config.cors_origins
    assert_equal [["close", "*"]], config.slow_readers
  end

  test "the file is found by HIKYAKU_CONFIG" do
    with_file("anonymous: true\nheartbeat: 9\n") do |path|
      assert_equal 9, Config.load(env: {"HIKYAKU_CONFIG" => path}).heartbeat
      with_file("anonymous: true\nheartbeat: 8\n") { |other| assert_equal 8, Config.load(env: {"HIKYAKU_CONFIG" => path}, file: other).heartbeat }
    end
  end

  test "scalars of the file are text, whatever YAML would make of them" do
    config = load("publisher_key: 0x1F\nsubscriber_key: '2001-01-01'\nissuer: no\nalg: hs256\nhistory: 1_000\n".sub("1_000", "100000"))
    assert_equal ["0x1F", "2001-01-01", "no", "HS256", 100_000], [config.publisher_key, config.subscriber_key, config.issuer, config.alg, config.history]
  end

  test "an empty file, a null value and comments change nothing" do
    ["", "\n", "# nothing\n", "---\n", "--- ~\n", "heartbeat:\nwrite_timeout: ~\n"].each do |text|
      assert_equal 15, load(text, flags: {anonymous: true}).heartbeat
    end
  end

  test "issuers are a list of mappings in the file" do
    file = "issuers:\n  - issuer: https://id.example\n    jwks: https://id.example/keys\n    alg: es256\n  - {issuer: app, publisher_key: abc, subscriber_key: def}\n"
    first, second = load(file).issuer_list
    assert_equal ["https://id.example", "ES256"], [first.issuer, first.alg]
    assert_equal %w[app abc def], [second.issuer, second.publisher_key, second.subscriber_key]
  end

  # [file, what the message must begin with, and hold]
  BAD_FILES = [
    ["a", "FILE:1:", "name: value"], ["- a", "FILE:1:", "name: value"], ["42", "FILE:1:", "name: value"],
    ["anonymous: true\nheartbeet: 1", "FILE:2: unknown setting heartbeet", "did you mean heartbeat?"],
    ["anonymous: maybe", "FILE:1: anonymous: expected true or false", "\"maybe\""],
    ["anonymous: [true]", "FILE:1: anonymous:", "one value"],
    ["\n\nheartbeat: {a: 1}", "FILE:3: heartbeat:", "number of seconds"],
    ["anonymous: true\nanonymous: false", "FILE:2:", "given twice"],
    ["cors_origin: '*'\ncors_origins: '*'", "FILE:2:", "both given"],
    ["cors_origins: {a: b}", "FILE:1: cors_origins:", "a list"],
    ["cors_origins: [[a]]", "FILE:1: cors_origins:", "origin"],
    ["? [a]\n: b", "FILE:1:", "a setting's name"],
    ["a: [", "FILE:", "not YAML"], ["a: \"b", "FILE:", "not YAML"], ["\tanonymous: true", "FILE:1:", "not YAML"],
    ["a: b: c", "FILE:1:", "not YAML"],
    ["anonymous: true\n---\nanonymous: false", "FILE:2:", "one YAML document"],
    ["publisher_key: !ChangeThisMercureHubJWTSecretKey!", "FILE:1:", "in quotes"], ["publisher_key: !secret", "FILE:1: publisher_key:", "in quotes"],
    ["issuer: !ruby/object:Object {}", "FILE:1: issuer:", "tags are not supported"],
    ["--- !ruby/object:OpenStruct\nissuer: x", "FILE:1:", "tags are not supported"],
    ["issuer: &a x\npath: *a", "FILE:2: path:", "aliases"],
    ["issuers: &a [*a]", "FILE:1: issuers:", "aliases"],
    ["issuers:\n- issuer: x\n  issuer: y", "FILE:3:", "given twice"],
    ["issuers:\n- issuer: x\n  nope: y", "FILE:1: issuers:", "not nope"],
    ["issuers:\n- - - - x", "FILE:2: issuers:", "nested too deeply"],
    ["issuers: x", "FILE:1: issuers:", "a mapping"],
    ["anonymous: \"\xFF\"".b, "FILE", "UTF-8"], ["anonymous: \"\u0000\"", "FILE:1:", "not YAML"],
    ["listen: 80:90:100", "FILE:1: listen:", "HOST:PORT"],
    ["publisher_key: '[hidden]'", "FILE:1: publisher_key:", "the key itself"],
    ["max_topics: 1.5", "FILE:1: max_topics:", "whole number"]
  ].freeze

  BAD_FILES.each_with_index do |(text, start, part), index|
    test "bad file #{index} is refused with the line and what is expected" do
      message = refused(text)
      assert message.start_with?(start), message
      assert_includes message, part
    end
  end

  test "a file that nests without end is refused" do
    assert_match(/FILE/, refused("issuers: #{"[" * 2_000}"))
    assert_match(/larger than/, refused("# #{"x" * 300_000}"))
  end

  test "a file that cannot be read is named with the reason" do
    error = assert_raises(Hikyaku::ConfigError) { Config.load(file: "/does/not/exist.yml") }
    assert_equal "/does/not/exist.yml: cannot be read: no such file or directory", error.message
    error = assert_raises(Hikyaku::ConfigError) { Config.load(file: Dir.pwd) }
    assert_includes error.message, "is a directory"
  end

  test "a bad variable is named" do
    assert_equal 'HIKYAKU_HEARTBEAT: expected a number of seconds from 0 to 3600, got "soon"', refused(env: {"HIKYAKU_HEARTBEAT" => "soon"})
    message = refused(env: {"MERCURE_PUBLISHER_JWT_KEY" => "k", "MERCURE_PUBLISHER_JWT_ALG" => "none"})
    assert message.start_with?("MERCURE_PUBLISHER_JWT_ALG: expected HS256"), message
  end

  test "a bad flag is named as it was written" do
    assert_equal "--cors-origin: expected an origin as https://example.com, without a path, or *", refused(flags: {cors_origins: ["x/"]})
    assert refused(flags: {heartbeat: "x" * 1000}).end_with?("got \"#{"x" * 60}…\"")
  end

  test "a variable that is nearly a setting is doubted, one that another program made is not" do
    config = load(env: {"HIKYAKU_ANONYMOUS" => "1", "HIKYAKU_PUBLISHERKEY" => "x", "HIKYAKU_PORT" => "tcp://10.0.0.1:3030", "HIKYAKU_TOKEN" => "x"})
    assert_includes config.doubts, "HIKYAKU_PUBLISHERKEY is not a setting; did you mean HIKYAKU_PUBLISHER_KEY?"
    refute(config.doubts.any? { |doubt| doubt.match?(/HIKYAKU_TOKEN|HIKYAKU_PORT/) })
  end

  test "a client needs no keys" do
    assert_raises(Hikyaku::ConfigError) { load }
    config = load(serving: false)
    assert_empty config.issuer_list
    assert load(serving: false, flags: {dev: true, listen: "0.0.0.0:1"})
    assert_raises(Hikyaku::ConfigError) { load(serving: false, flags: {engine: "rust"}) }
  end

  test "an environment in another encoding is read as UTF-8" do
    config = load(env: {"HIKYAKU_ANONYMOUS" => "1", "HIKYAKU_ISSUER" => "d\u00E9mo".b})
    assert_equal "d\u00E9mo", config.issuer
    ["\xFF".b, "\xFF"].each { |text| assert_includes refused(env: {"HIKYAKU_ISSUER" => text}), "UTF-8" }
  end
end
