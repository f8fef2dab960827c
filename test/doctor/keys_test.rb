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
      assert(found.advice.any? { |line| line.start_with?("hikyaku serve: --#{role}-key KEY, or HIKYAKU_#{role.upcase}_KEY") }, found.advice.inspect)
      assert(found.advice.any? { |line| line.start_with?("rails: config.hikyaku.#{role}_key, or hikyaku: {#{role}_key: …} in the credentials") })
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
    found = assert_says :fail, /for its issuer: the hub trusts hikyaku, not https:\/\/issuer\.example\.com\z/, check("publisher", home)
    assert_equal %w[--issuer config.hikyaku.issuer], changes(found)
    assert_says :fail, /for its issuer: the hub trusts hikyaku/, check("subscriber", home)
    assert_says :fail, /for its issuer: the hub trusts http:\/\/localhost,/, check("publisher", hub(HOME, issuer: "http://localhost"))
  end

  test "an audience that the hub does not have" do
    found = assert_says :fail, /for its audience: the hub takes tokens for #{HOME}, not #{AWAY}\z/o, check("publisher", hub, audience: AWAY)
    assert_equal %w[--resource-identifier config.hikyaku.resource_identifier], changes(found)
    assert_says :fail, /for its audience/, check("subscriber", hub, audience: AWAY)
  end

  test "an audience that nobody gave is what the hub calls itself" do
    assert_says :ok, /accepted/, check("publisher", hub, "http://127.0.0.1/.well-known/mercure")
  end

  test "several things at once" do
    home = hub(HOME, issuer: "hikyaku")
    swapped = {publisher: SECRETS[:subscriber], subscriber: SECRETS[:publisher]}
    found = assert_says :fail, /for its key: .*, its issuer: .* and its audience: /, check("publisher", home, secrets: swapped, audience: AWAY)
    assert_equal %w[--publisher-key config.hikyaku.publisher_key --issuer config.hikyaku.issuer --resource-identifier config.hikyaku.resource_identifier], changes(found)
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
  end

  test "a token that is none, or is for nobody, is said to be that" do
    refused = ->(token) { assert_says :fail, /the token is refused/, check("publisher", hub, keys: [], tokens: [token]) }
    ["nonsense", "a.b.c", "a.W10.c"].each { |token| assert_equal "the token is refused: it is no JWT", refused.call(token).message, token }
    assert_match(/\Agive --token TOKEN/, refused.call("nonsense").advice.first)
    [nil, [], ""].each do |aud|
      found = refused.call(AccessTokens.token(:publisher, "*", aud: aud))
      assert_equal "the token is refused: it names no audience, and the hub calls itself #{HOME}", found.message
    end
    found = refused.call(AccessTokens.token(:publisher, "*", aud: nil, exp: Time.now.to_i - 600))
    assert_match(/it has expired \d+ minutes ago and it names no audience/, found.message)
  end

  test "a refusal that lost its challenge on the way is no wrong key where none is given" do
    strict = hub(HOME, anonymous: false)
    assert_says :skip, /readers need a token; give --subscriber-key, --dev or --token \(in an application /, check("subscriber", proxy(hubs: [strict], lost: %w[www-authenticate]), keys: [])
  end

  test "what is refused for another reason than the token comes with what to change, too" do
    {
      400 => /query and body on unchanged/, 403 => /no access rule/, 404 => /send the hub's path and all/, 429 => /let the hub hold more streams/,
      500 => /read the log of what answers/, 302 => /give the hub's own URL/
    }.each do |status, advice|
      answering = proxy(answers: {/\APOST/ => "HTTP/1.1 #{status} Status\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"})
      assert_match advice, assert_says(:fail, /#{status}/, check("publisher", answering)).advice.first
      assert_match advice, assert_says(:fail, /#{status}/, check("authorization", answering)).advice.first
    end
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

  private

  # @return [Array<String>] flags of the hub and settings of an application that the advice begins with, in order
  def changes(finding) = finding.advice.filter_map { |line| line[/\A(?:hikyaku serve|rails): ([\w.-]+)/, 1] }
end
