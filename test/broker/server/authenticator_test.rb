# frozen_string_literal: true

require "test_helper"
require "hikyaku/broker/server"
require "hikyaku/broker/server/authenticator"
require "hikyaku/config"
require "support/access_tokens"
require "tempfile"

class BrokerAuthenticatorTest < Minitest::Test
  include AccessTokens

  Authenticator = Hikyaku::Broker::Server::Authenticator
  Permission = Hikyaku::Broker::Permission
  SECRET = "sixteen bytes, or more"
  CLAIM = {"send" => ["orders.*"], "receive" => ["orders.new", "@printer-*"], "manage" => ["*"]}.freeze

  def authenticator(**settings)
    Authenticator.of(Hikyaku::Config.load(serving: :broker, flags: settings))
  end

  def with_secret(text = "#{SECRET}\n", **settings)
    Tempfile.create("secret") do |file|
      file.write(text)
      file.close
      yield authenticator(broker_secret_file: file.path, **settings)
    end
  end

  def with_tokens(**settings)
    authenticator(issuer: ISSUER, publisher_key: SECRETS[:publisher], subscriber_key: SECRETS[:subscriber], resource_identifier: HUB_URL, **settings)
  end

  def hello(kind, credentials = "", identity: "") = Hikyaku::Broker::AuthRequest.new(serial: 1, identity: identity, credentials: credentials, kind: kind)

  def bearer(role = :publisher, hikyaku: CLAIM, **claims) = token(role, "*", hikyaku: hikyaku, **claims)

  # What a decision permits: a pattern and its rights, sorted.
  def rights(decision)
    assert decision.permitted?, decision.reason
    decision.permissions.map { |permission| [permission.pattern, permission.rights] }.sort
  end

  def refused(decision)
    refute decision.permitted?
    refute_includes decision.reason, SECRET
    decision.reason
  end

  test "nobody is asked where there is neither a secret nor an issuer" do
    assert_nil authenticator
  end

  test "whoever knows the secret may do everything, for ever" do
    with_secret do |authenticator|
      decision = authenticator.call(hello(1, SECRET.b))
      assert_equal [["*", Permission::ALL]], rights(decision)
      assert_nil decision.until_ms
      ["", SECRET[..-2], "#{SECRET}!", "#{SECRET}\n", "x" * 16_384].each { |wrong| assert_equal "the secret is wrong", refused(authenticator.call(hello(1, wrong))) }
      assert_includes refused(authenticator.call(hello(0))), "give a secret"
      assert_includes refused(authenticator.call(hello(2, bearer))), "accepts no tokens"
      refute_includes authenticator.inspect, SECRET
    end
  end

  test "a secret that is too short, or that cannot be read, is refused at the start, and not repeated" do
    error = assert_raises(Hikyaku::ConfigError) { with_secret("tiny\n") {} }
    assert_match(/holds 4 bytes; a secret needs 16 or more/, error.message)
    error = assert_raises(Hikyaku::ConfigError) { authenticator(broker_secret_file: "/does/not/exist") }
    assert_match(%r{/does/not/exist cannot be read: no such file}, error.message)
    assert_match(/holds 0 bytes; a secret needs 16 or more/, assert_raises(Hikyaku::ConfigError) { with_secret("") {} }.message)
    [" " * 20, "\u00A0\u200B" * 20, "\0" * 20].each { |text| assert_match(/contains only white space/, assert_raises(Hikyaku::ConfigError) { with_secret(text) {} }.message) }
    assert_match(/cannot be read: is a directory/, assert_raises(Hikyaku::ConfigError) { authenticator(broker_secret_file: Dir.tmpdir) }.message)
  end

  test "a secret that everybody can read or write is refused, and one that the group can read is not" do
    Dir.mktmpdir do |folder|
      path = File.join(folder, "secret")
      File.write(path, SECRET)
      {0o644 => "read", 0o604 => "read", 0o666 => "read", 0o602 => "written", 0o777 => "read"}.each do |mode, what|
        File.chmod(mode, path)
        error = assert_raises(Hikyaku::ConfigError, format("%o", mode)) { authenticator(broker_secret_file: path) }
        [path, "can be #{what} by every user", format("mode %04o", mode), "chmod o-rwx #{path}"].each { |part| assert_includes error.message, part }
        refute_includes error.message, SECRET
      end
      [0o600, 0o400, 0o440, 0o640, 0o660, 0o750].each do |mode|
        File.chmod(mode, path)
        assert authenticator(broker_secret_file: path), format("%o", mode)
      end
    end
  end

  test "a secret that comes through a pipe is taken" do
    reader, writer = IO.pipe
    writer.write(SECRET)
    writer.close
    assert authenticator(broker_secret_file: "/dev/fd/#{reader.fileno}")
  ensure
    reader.close
  end

  test "a token permits what its claim says, until it ends" do
    exp = Time.now.to_i + 60
    decision = with_tokens.call(hello(2, bearer(exp: exp)))
    assert_equal [["*", Permission::MANAGE], ["@printer-*", Permission::RECEIVE], ["orders.*", Permission::SEND], ["orders.new", Permission::RECEIVE]], rights(decision)
    assert_equal exp * 1000, decision.until_ms
    assert_empty rights(with_tokens.call(hello(2, bearer(hikyaku: {}))))
  end

  test "what only the subscribers' key has signed permits to receive, and no more" do
    decision = with_tokens.call(hello(2, bearer(:subscriber)))
    assert_equal [["@printer-*", Permission::RECEIVE], ["orders.new", Permission::RECEIVE]], rights(decision)
  end

  # [what is wrong, claims, what the sentence says]
  BAD = [
    ["no claim", {hikyaku: :absent}, "no claim hikyaku"], ["a claim that is a list", {hikyaku: ["*"]}, "not an object"],
    ["patterns that are a string", {hikyaku: {"send" => "*"}}, "hikyaku.send"], ["a pattern that is a number", {hikyaku: {"receive" => [1]}}, "hikyaku.receive"],
    ["a star in the middle", {hikyaku: {"manage" => ["a*b"]}}, "hikyaku.manage"], ["an empty pattern", {hikyaku: {"send" => [""]}}, "hikyaku.send"],
    ["a long pattern", {hikyaku: {"send" => ["x" * 257]}}, "hikyaku.send"], ["many patterns", {hikyaku: {"send" => ["x"] * 1_001}}, "hikyaku.send"],
    ["another audience", {aud: "https://other.example"}, "aud"], ["another issuer", {iss: "https://other.example"}, "iss"],
    ["the past", {exp: 1}, "expired"], ["no end", {exp: :absent}, "exp"], ["another key", {key: "another secret of thirty-two bytes"}, "signature"]
  ].freeze

  BAD.each do |what, claims, sentence|
    test "a token with #{what} is refused, and the sentence holds nothing of it" do
      given = bearer(**claims)
      message = refused(with_tokens.call(hello(2, given)))
      assert_includes message, sentence
      refute_includes message, given[20, 40]
    end
  end

  test "text that is no token is refused" do
    ["", "x", "a.b.c", "\xff" * 100, "x" * 16_384].each { |text| refused(with_tokens.call(hello(2, text.b))) }
  end

  test "a token is for the client that it names, and for those whose queues it permits to receive from" do
    authenticator = with_tokens
    given = bearer(sub: "user-1")
    ["", "user-1", "printer-7"].each { |identity| assert authenticator.call(hello(2, given, identity: identity)).permitted?, identity }
    %w[user-2 printer orders.new].each { |identity| assert_includes refused(authenticator.call(hello(2, given, identity: identity))), "identity" }
  end

  test "a broker may take both a secret and tokens" do
    with_secret(issuer: ISSUER, publisher_key: SECRETS[:publisher], resource_identifier: HUB_URL) do |authenticator|
      assert authenticator.call(hello(1, SECRET)).permitted?
      assert authenticator.call(hello(2, bearer)).permitted?
      assert_includes refused(authenticator.call(hello(0))), "give a secret or a token"
      assert_includes refused(authenticator.call(hello(7))), "give a secret or a token"
    end
  end
end
