# frozen_string_literal: true

require "test_helper"
require "hikyaku/config"
require "hikyaku/web"
require_relative "../support/access_tokens"

# What Web hands to a server that answers like requests by itself.
class GrantedTest < Minitest::Test
  include AccessTokens

  GRANT = Hikyaku::Web::Request::GRANT
  SETTINGS = {
    resource_identifier: AccessTokens::HUB_URL, issuer: AccessTokens::ISSUER,
    publisher_key: AccessTokens::SECRETS[:publisher], subscriber_key: AccessTokens::SECRETS[:subscriber]
  }.freeze

  def web(**settings) = @web ||= Hikyaku::Web.new(Hikyaku::Config.new(**SETTINGS, anonymous: true, **settings))

  def call(method, query: "", body: nil, token: nil, **env)
    env = {"REQUEST_METHOD" => method, "SCRIPT_NAME" => "", "PATH_INFO" => "/.well-known/mercure", "QUERY_STRING" => query,
           "SERVER_PROTOCOL" => "HTTP/1.1", "rack.url_scheme" => "http", GRANT => nil}.merge(env)
    env["HTTP_AUTHORIZATION"] = "Bearer #{token}" if token
    env.update("CONTENT_TYPE" => "application/x-www-form-urlencoded", "CONTENT_LENGTH" => body.bytesize.to_s, "rack.input" => StringIO.new(body)) if body
    status, = web.call(env)
    [status, env[GRANT]]
  end

  test "a subscribe leaves the grant that it got" do
    expires_at = Time.now.to_i + 60
    status, grant = call("GET", query: "match=/a&match_urlpattern=/b/:id", token: token(:subscriber, "/a", exp: expires_at, sub: "alice"))
    assert_equal 200, status
    assert_equal [["exact", "/a"], ["urlpattern", "/b/:id"]], grant.matchers.map { |matcher| [matcher.type, matcher.pattern] }
    assert_equal [["/a"], [], "alice", expires_at], [grant.reads.map(&:pattern), grant.publishes, grant.subject, grant.expires_at.to_i]
  end

  test "a publish leaves what its token permits" do
    status, grant = call("POST", body: "topic=/a&data=x", token: token(:publisher, "/a", "/b", sub: "press"))
    assert_equal 200, status
    assert_equal [%w[/a /b], [], [], "press"], [grant.publishes.map(&:pattern), grant.matchers, grant.reads, grant.subject]
  end

  test "what is refused leaves nothing, and neither does what was only looked at" do
    [["GET", {query: "matches=/a"}, 400], ["GET", {query: "match=/a", token: "x.y.z"}, 401], ["POST", {body: "topic=/a"}, 401],
      ["POST", {body: "topic=/b", token: token(:publisher, "/a")}, 403], ["POST", {body: "data=x", token: token(:publisher, "*")}, 400],
      ["HEAD", {query: "match=/a"}, 200]].each do |method, options, expected|
      assert_equal [expected, nil], call(method, **options), [method, options].inspect
    end
  end

  test "a server that asks for no grant is left none" do
    env = {"REQUEST_METHOD" => "GET", "PATH_INFO" => "/.well-known/mercure", "QUERY_STRING" => "match=/a"}
    assert_equal 200, web.call(env).first
    refute env.key?(GRANT)
  end

  test "a driver is told whose decisions are void before the streams are closed, and when keys change" do
    told = []
    driver = web.hub.driver
    driver.define_singleton_method(:forget) { |subject| told << subject }
    web.disconnect(subject: "alice", revoke: true)
    assert_equal ["alice"], told
    web.authorization.on_change { driver.forget(nil) }
    web.authorization.send(:forget)
    assert_equal ["alice", nil], told
  end

  # As over HTTP: with `user.id` somebody would go on unnoticed.
  test "what is no subject of a token is an error, in which nothing is revoked" do
    [7, :alice, nil, ""].each { |subject| assert_raises(ArgumentError, subject.inspect) { web.disconnect(subject: subject, revoke: true) } }
    refute web.hub.revoked?("", 1.0)
  end
end
