# frozen_string_literal: true

require_relative "cli_helper"
require "base64"
require "json"
require "openssl"
require "tempfile"

class CLITokenTest < Minitest::Test
  include CommandLine

  SECRET = "s3cret-of-the-tests-that-is-long-enough"
  HUB = "http://127.0.0.1:3030/.well-known/mercure"

  def header(token) = JSON.parse(Base64.urlsafe_decode64(token.split(".")[0]))

  def claims(token) = JSON.parse(Base64.urlsafe_decode64(token.split(".")[1]))

  def token(...)
    out = done("token", ...)
    assert_equal 1, out.lines.size
    out.chomp
  end

  test "section Authorization: a token is made for the hub of the same configuration" do
    claims = claims(token("--dev", "--publish", "*"))
    assert_equal ["hikyaku", HUB, "hikyaku"], claims.values_at("iss", "aud", "client_id")
    assert_equal 3600, claims["exp"] - claims["iat"]
    assert_equal [{"type" => "https://mercure.rocks/authorization-detail", "actions" => ["publish"], "topics" => [{"match" => "*"}]}], claims["authorization_details"]
    assert_equal %w[at+jwt HS256], header(token("--dev", "--publish", "*")).values_at("typ", "alg")
  end

  test "a token may permit something of the broker, by the key that it takes" do
    require "hikyaku/broker/server"
    keys = ["--publisher-key", SECRET, "--subscriber-key", SECRET.reverse]
    authenticator = Hikyaku::Broker::Server::Authenticator.of(Hikyaku::Config.load(serving: :broker, flags: {publisher_key: SECRET, subscriber_key: SECRET.reverse}))
    permitted = lambda do |token|
      decision = authenticator.call(Hikyaku::Broker::AuthRequest.new(serial: 1, identity: "", credentials: token, kind: 2))
      decision.permissions&.map { |permission| [permission.pattern, permission.rights] }
    end
    all = token(*keys, "--send", "orders.*", "--send", "mail", "--receive", "mail", "--manage", "*")
    assert_equal({"send" => ["orders.*", "mail"], "receive" => ["mail"], "manage" => ["*"]}, claims(all)["hikyaku"])
    assert_equal [["orders.*", 1], ["mail", 1], ["mail", 2], ["*", 4]], permitted.call(all)
    assert_equal [["mail", 2]], permitted.call(token("--subscriber-key", SECRET.reverse, "--role", "subscriber", "--receive", "mail"))
    assert_equal [["mail", 2]], permitted.call(token("--subscriber-key", SECRET.reverse, "--receive", "mail", "--subscribe", "/a"))
    assert_match(/different keys/, refused("token", *keys, "--subscribe", "/a", "--send", "mail"))
    assert_match(/--send PATTERN/, refused("token", *keys))
  end

  test "every part of a token can be told" do
    token = token("--dev", "--publish", "/a", "--publish", "/b", "--publish-pattern", "/c/:id", "--subscribe", "/d", "--subscribe-pattern", "/e/*",
      "--payload", '{"n": [1]}', "--subject", "ann", "--expires-in", "60", "--key-id", "k1", "--issuer", "https://app.example",
      "--resource-identifier", "https://hub.example/hub")
    publish, subscribe = claims(token)["authorization_details"]
    assert_equal [{"match" => "/a"}, {"match" => "/b"}, {"match" => "/c/:id", "match_type" => "urlpattern"}], publish["topics"]
    assert_equal [{"match" => "/d"}, {"match" => "/e/*", "match_type" => "urlpattern"}], subscribe["topics"]
    assert_equal({"n" => [1]}, subscribe["payload"])
    assert_equal ["ann", "https://app.example", "https://hub.example/hub", 60], claims(token).values_at("sub", "iss", "aud") + [claims(token)["exp"] - claims(token)["iat"]]
    assert_equal "k1", header(token)["kid"]
  end

  test "keys come from flags, variables and the file" do
    Tempfile.create(["hub", ".yml"]) do |file|
      file.write("publisher_key: #{SECRET}\nissuer: file\nmax_topics: 5\n")
      file.close
      assert_equal "file", claims(token("--config", file.path, "--publish", "*"))["iss"]
      assert_equal "file", claims(token("--publish", "*", env: {"HIKYAKU_CONFIG" => file.path}))["iss"]
    end
    assert_equal "hikyaku", claims(token("--publish", "*", env: {"MERCURE_PUBLISHER_JWT_KEY" => SECRET}))["iss"]
    Tempfile.create("key") do |file|
      file.write(OpenSSL::PKey::EC.generate("prime256v1").to_pem)
      file.close
      assert_equal "ES256", header(token("--subscriber-key", "file:#{file.path}", "--subscribe", "*"))["alg"]
    end
  end

  test "the key follows from the grants, or from --role" do
    keys = ["--publisher-key", SECRET, "--subscriber-key", "another secret of the tests that is long"]
    assert token(*keys, "--publish", "*")
    assert token(*keys, "--subscribe", "*")
    assert_match(/different keys/, refused("token", *keys, "--publish", "*", "--subscribe", "*"))
    assert token(*keys, "--publish", "*", "--subscribe", "*", "--role", "publisher")
    assert_match(/no subscriber_key/, refused("token", "--publisher-key", SECRET, "--subscribe", "*"))
    assert_match(/no key to sign with/, refused("token", "--publish", "*"))
  end

  test "one of several issuers is chosen with --issuer" do
    Tempfile.create(["hub", ".yml"]) do |file|
      file.write("issuers:\n- {issuer: a, publisher_key: #{SECRET}}\n- {issuer: b, publisher_key: #{SECRET}}\n")
      file.close
      assert_equal "b", claims(token("--config", file.path, "--issuer", "b", "--publish", "*"))["iss"]
      assert_match(/which issuer\? give one of a, b/, refused("token", "--config", file.path, "--publish", "*"))
    end
  end

  test "Mercure 0.x: --legacy makes a token with the claim mercure" do
    token = token("--dev", "--legacy", "--publish", "https://a.example/{id}", "--subscribe", "*", "--payload", "[1]")
    assert_equal({"publish" => ["https://a.example/{id}"], "subscribe" => ["*"], "payload" => [1]}, claims(token)["mercure"])
    assert_equal "JWT", header(token)["typ"]
  end

  # [arguments, what the message holds]
  [
    [%w[--dev], "give --publish TOPIC or --subscribe TOPIC"],
    [%w[--dev --publish * --expires-in 0], "--expires-in: expected"],
    [%w[--dev --publish * --expires-in 1h], "--expires-in: expected"],
    [%w[--dev --publish * --expires-in 99999999999], "--expires-in: expected"],
    [%w[--dev --publish * --role admin], "--role: expected publisher or subscriber"],
    [%w[--dev --publish * --payload {}], "without --subscribe"],
    [%w[--dev --subscribe * --payload 5], "expected a JSON object"],
    [%w[--dev --subscribe * --payload {], "expected a JSON object"],
    [["--dev", "--publish", "a\u200Bb"], ""],
    [["--dev", "--publish", "a\nb"], ""],
    [["--dev", "--publish", "\xFF"], "not valid UTF-8"],
    [["--dev", "--publish", "x" * 5000], ""],
    [["--dev", "--publish-pattern", "/books/{"], ""],
    [%w[--dev --legacy --publish-pattern /a/:id], "URI template"],
    [["--dev", *(["--publish", "x" * 4000] * 5)], "max_token_bytes"],
    [%w[--publisher-key https://id.example/keys --publish *], "verify tokens only"],
    [%w[--alg RS256 --publisher-key secret --publish *], "RS256 cannot be used with a secret"],
    [["--dev", "--explain", ""], "the token is empty"]
  ].each_with_index do |(arguments, part), index|
    test "wrong request #{index} for a token is refused" do
      assert_includes refused("token", *arguments), part
    end
  end

  test "explain says what an accepted token permits" do
    token = token("--dev", "--subscribe", "/a", "--subscribe-pattern", "/b/*", "--payload", '{"x": "\u001b[31m"}')
    out = done("token", "--dev", "--explain", token)
    assert_includes out, "\"sub\": \"urn:uuid:"
    assert_match(/^As a subscriber's token: accepted$/, out)
    assert_match(%r{^    /a \(exact\) with payload}, out)
    assert_match(%r{^    /b/\* \(urlpattern\)}, out)
    assert_match(/It permits nothing: it grants no topic to publish to/, out)
    refute_includes out, "\e"
    assert_equal out, done("token", "--dev", "--explain", "-", stdin: "#{token}\n")
  end

  test "explain says why a token is refused, with code 1 and without the key" do
    token = token("--publisher-key", SECRET, "--publish", "*")
    result = hikyaku("token", "--publisher-key", "quite another secret, long enough, really", "--role", "publisher", "--explain", token)
    assert_equal 1, result.code
    assert_match(/^As a publisher's token: refused$/, result.out)
    assert_match(/^  ok  form: /, result.out)
    assert_match(/^  NO  signature: /, result.out)
    refute_includes result.out, "subscriber"
    refute_includes result.out, "another secret"
    ["abc", "a.b.c", "..", "a\u0000b", "x" * 100_000, "eyJ9.e30.x"].each do |garbage|
      result = hikyaku("token", "--dev", "--explain", garbage)
      assert_equal [1, ""], [result.code, result.err], garbage[0, 20].inspect
      assert_match(/NO/, result.out)
    end
  end

  test "explain understands tokens of Mercure 0.x when the hub does" do
    token = token("--publisher-key", SECRET, "--legacy", "--publish", "*")
    assert_match(/refused/, hikyaku("token", "--publisher-key", SECRET, "--role", "publisher", "--explain", token).out)
    assert_match(/accepted \(Mercure 0.x\)/, done("token", "--publisher-key", SECRET, "--role", "publisher", "--legacy", "--explain", token))
  end
end
