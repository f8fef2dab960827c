# frozen_string_literal: true

require "test_helper"
require "support/rails_settings"

# What `config.hikyaku` may say of Turbo Streams, and the topics that streams have.
class TurboSettingsTest < Minitest::Test
  include RailsSettings

  test "unless it is said, nothing is switched on, and all the rest has its value" do
    turbo = settings.turbo
    refute turbo.on?
    assert turbo.after_commit?
    assert_equal ["/hikyaku/streams", 43_200.0, 600, nil], [turbo.path, turbo.expires_in, turbo.token_expires_in, turbo.authorize]
    assert_equal "/hikyaku/streams", settings.streams_path
  end

  test "what is said counts, and is nothing that the hub's own settings complain about" do
    decision = ->(_name, _request) { true }
    given = settings(turbo: true, turbo_path: "/live/door", turbo_expires_in: 1.hour, turbo_token_expires_in: 2.minutes, turbo_authorize: decision, after_commit: false)
    turbo = given.turbo
    assert turbo.on?
    refute turbo.after_commit?
    assert_equal ["/live/door", 3600.0, 120, decision], [turbo.path, turbo.expires_in, turbo.token_expires_in, turbo.authorize]
    assert given.config
    assert_nil settings(turbo_expires_in: nil).turbo.expires_in
    assert_equal 600, settings(turbo_token_expires_in: nil, turbo_path: nil, after_commit: nil).turbo.token_expires_in
  end

  test "an application below a path has its door there" do
    application = Application.new(settings: {turbo: true}, relative_url_root: "/shop/")
    assert_equal "/shop/hikyaku/streams", Settings.new(application).streams_path
  end

  test "a wrong value is named, and the application does not start" do
    {
      {turbo: "yes"} => /turbo is "yes"/, {after_commit: 1} => /after_commit is 1/, {turbo_path: "hikyaku"} => /turbo_path is "hikyaku"/,
      {turbo_path: "/a b"} => /turbo_path/, {turbo_path: "/"} => /turbo_path/, {turbo_path: "/x?y"} => /turbo_path/, {turbo_path: 7} => /turbo_path/,
      {turbo_expires_in: 0} => /turbo_expires_in is 0/, {turbo_expires_in: -1} => /turbo_expires_in/, {turbo_expires_in: "12"} => /turbo_expires_in/,
      {turbo_expires_in: Float::INFINITY} => /turbo_expires_in/, {turbo_token_expires_in: 0.5} => /turbo_token_expires_in is 0 s/,
      {turbo_token_expires_in: 2.days} => /turbo_token_expires_in/, {turbo_token_expires_in: false} => /turbo_token_expires_in/,
      {turbo_authorize: true} => /turbo_authorize is TrueClass/
    }.each do |given, message|
      assert_match(message, assert_raises(Hikyaku::ConfigError, given.inspect) { settings(**given).turbo }.message)
    end
    assert_raises(Hikyaku::ConfigError) { settings(turbo_pth: "/x").config }
  end

  test "with keys that cannot sign, pages would get no tokens: the application does not start" do
    set = JSON.generate(keys: [])
    mount = Hikyaku::Railtie::Mount.new(settings(turbo: true, jwks: set))
    assert_raises(Hikyaku::ConfigError) { mount.settle }
    Hikyaku::Railtie::Mount.new(settings(turbo: true)).settle
  end

  test "a stream's topic is its name, percent-encoded" do
    {
      "messages" => "messages", "a b" => "a%20b", "Z2lkOi8vc2hvcC9Cb2FyZC8x:messages" => "Z2lkOi8vc2hvcC9Cb2FyZC8x%3Amessages", "a/b?c#d" => "a%2Fb%3Fc%23d",
      "100%" => "100%25", "%41" => "%2541", "A" => "A", "{id}" => "%7Bid%7D", "*" => "%2A", "☃" => "%E2%98%83", "-._~" => "-._~", "\u0000\n" => "%00%0A", "\xFF" => "%FF"
    }.each { |name, topic| assert_equal "/turbo/streams/#{topic}", Hikyaku::Turbo.topic(name) }
  end

  test "of a long name it is a digest, so that a token has room for a hundred" do
    topic = Hikyaku::Turbo.topic("x" * 81)
    assert_match(%r{\A/turbo/streams/sha256:[A-Za-z0-9_-]{43}\z}, topic)
    assert_equal topic, Hikyaku::Turbo.topic("x" * 81)
    refute_equal topic, Hikyaku::Turbo.topic("x" * 82)
    assert_equal "/turbo/streams/#{"x" * 80}", Hikyaku::Turbo.topic("x" * 80)
    assert_match(/sha256/, Hikyaku::Turbo.topic("☃" * 27))
  end

  test "no two names have one topic, whatever anybody calls a stream" do
    digest = Hikyaku::Turbo.topic("x" * 81).delete_prefix("/turbo/streams/")
    names = ["a:b", "a%3Ab", "a%3ab", "a/b", "a%2Fb", "a%2fb", ".", "..", "%2E", "%2e%2e", "../a", "a", "A", "a ", " a", "a+b", "a b", "sha256:x", digest,
      CGI.escape(digest), "é", "e\u0301", "\xE9", "\u0000", "%00", "", "x" * 81, "x" * 300]
    assert_equal names.size, names.map { |name| Hikyaku::Turbo.topic(name) }.uniq.size
    assert(names.all? { |name| Hikyaku::Turbo.topic(name).bytesize <= 95 && Hikyaku::Turbo.topic(name).encoding == Encoding::UTF_8 })
  end
end
