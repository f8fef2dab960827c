# frozen_string_literal: true

require "test_helper"
require "support/examination"

# Keys, issuers and audiences that are not the hub's: which of them it is, though the hub does not say.
class DoctorKeysTest < Minitest::Test
  include Examination

  SECRETS = AccessTokens::SECRETS
  OTHER = "a secret that is nobody's, of 32 bytes and more"

  test "keys that are the hub's are accepted" do
    findings = examine(hub, only: %w[publisher subscriber])
    assert_among :ok, /accepted \(Hikyaku's hub\)/, findings
    assert_among :ok, /with a token a stream is opened/, findings
  end

  test "a key that is not the hub's" do
    {publisher: /publisher key is not the hub's .*the subscriber key were tried/, subscriber: /subscriber key is not the hub's/}.each do |role, message|
      found = assert_says :fail, message, check(role.to_s, hub, secrets: SECRETS.merge(role => OTHER))
      refute_includes found.message, OTHER
    end
    assert_says :fail, /key is not the hub's/, check("publisher", hub, keys: [:publisher], secrets: {publisher: OTHER})
  end

  test "keys that are swapped" do
    swapped = {publisher: SECRETS[:subscriber], subscriber: SECRETS[:publisher]}
    assert_says :fail, /for its key: the hub believes the one that is given as subscriber key/, check("publisher", hub, secrets: swapped)
    assert_says :fail, /for its key: the hub believes the one that is given as publisher key/, check("subscriber", hub, secrets: swapped)
  end

  test "an issuer that the hub does not trust, where another is" do
    home = hub(HOME, issuer: "hikyaku")
    assert_says :fail, /for its issuer: the hub trusts hikyaku, not https:\/\/issuer\.example\.com \(--issuer\)/, check("publisher", home)
    assert_says :fail, /for its issuer: the hub trusts hikyaku/, check("subscriber", home)
    assert_says :fail, /for its issuer: the hub trusts http:\/\/localhost,/, check("publisher", hub(HOME, issuer: "http://localhost"))
  end

  test "an audience that the hub does not have" do
    assert_says :fail, /for its audience: the hub takes tokens for #{HOME}, not #{AWAY} \(--resource-identifier\)/o, check("publisher", hub, audience: AWAY)
    assert_says :fail, /for its audience/, check("subscriber", hub, audience: AWAY)
  end

  test "an audience that nobody gave is what the hub calls itself" do
    assert_says :ok, /accepted/, check("publisher", hub, "http://127.0.0.1/.well-known/mercure")
  end

  test "several things at once" do
    home = hub(HOME, issuer: "hikyaku")
    swapped = {publisher: SECRETS[:subscriber], subscriber: SECRETS[:publisher]}
    assert_says :fail, /for its key: .*, its issuer: .* and its audience: /, check("publisher", home, secrets: swapped, audience: AWAY)
  end

  test "a header that a proxy drops is no wrong key" do
    found = assert_says :fail, /the hub saw no token: the header Authorization does not get to it/, check("publisher", proxy(without: %w[authorization]))
    assert_match(/pass the header Authorization/, found.advice.first)
    strict = hub(HOME, anonymous: false)
    assert_says :fail, /the hub saw no token/, check("subscriber", proxy(hubs: [strict], without: %w[authorization]))
  end

  test "tokens that were made elsewhere, each for what it grants" do
    tokens = %i[publisher subscriber].map { |role| AccessTokens.token(role, "https://example.com/1", aud: HOME) }
    findings = examine(hub, keys: [], tokens: tokens, topic: "https://example.com/1", skip: %w[idle])
    assert_well findings
    assert_equal %w[discovery cors], findings.select { |finding| finding.level == :skip }.map(&:check)
    assert_says :skip, /give --publisher-key/, check("publisher", hub, keys: [], tokens: tokens.last(1))
  end

  test "what is wrong with a token that was made elsewhere is read in it" do
    refused = ->(**claims) { check("publisher", hub, keys: [], tokens: [AccessTokens.token(:publisher, "*", aud: HOME, **claims)]) }
    assert_says :fail, /refused: it has expired \d+ minutes ago/, refused.call(exp: Time.now.to_i - 600)
    assert_says :fail, /refused: it is for #{AWAY}, and the hub calls itself #{HOME}/o, refused.call(aud: AWAY)
    assert_says :fail, /its key or its issuer \("https:\/\/nobody\.example"\)/, refused.call(iss: "https://nobody.example")
    assert_says :fail, /though it is in time and for this hub: its key or its issuer/, refused.call(key: OTHER)
    assert_says :fail, /does not grant publishing to urn:hikyaku:doctor:\h+: give --topic TOPIC/, check("publisher", hub, keys: [], tokens: [AccessTokens.token(:publisher, "https://example.com/1", aud: HOME)])
    assert_says :fail, /the token is refused/, check("publisher", hub, keys: [], tokens: ["nonsense"])
  end

  test "a key that only verifies cannot act as anybody, which is no mistake" do
    public_key = OpenSSL::PKey::EC.generate("prime256v1").public_to_pem
    assert_says :skip, /give --publisher-key.*the private key/, check("publisher", hub, secrets: SECRETS.merge(publisher: public_key))
    assert_says :ok, /without a token/, check("subscriber", hub, secrets: SECRETS.merge(subscriber: public_key))
  end

  test "limits of the hub are no wrong keys" do
    full = hub(HOME, max_connections: 1)
    held = ending(full.client.stream("GET", "#{full.path}?match=x"))
    assert_kind_of EventStream, held
    findings = examine(full, only: %w[subscriber flush])
    assert_among :fail, /too many connections/, findings
  end
end
