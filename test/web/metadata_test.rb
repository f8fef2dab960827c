# frozen_string_literal: true

require "test_helper"
require "hikyaku/web/metadata"

# Mercure draft-08, section "Protected Resource Metadata"; RFC 9728.
class MetadataTest < Minitest::Test
  Config = Struct.new(:resource_identifier, :hub_url, :cookie_name, :subscriptions, keyword_init: true)
  HUB_URL = "https://hub.example.com/.well-known/mercure"

  def metadata(authorization_servers: [], **settings)
    config = Config.new(resource_identifier: HUB_URL, hub_url: HUB_URL, cookie_name: "__Secure-mercure_access_token", subscriptions: false)
    settings.each { |name, value| config[name] = value }
    Hikyaku::Web::Metadata.new(config, authorization_servers: authorization_servers)
  end

  # RFC 9728 section 3: the well-known path goes between host and path.
  test "the URL is derived from the resource identifier" do
    known = "/.well-known/oauth-protected-resource"
    {
      HUB_URL => ["https://hub.example.com#{known}/.well-known/mercure", "#{known}/.well-known/mercure"],
      "https://hub.example.com" => ["https://hub.example.com#{known}", known],
      "https://hub.example.com/" => ["https://hub.example.com#{known}", known],
      "https://hub.example.com:8443/a/b/" => ["https://hub.example.com:8443#{known}/a/b/", "#{known}/a/b/"],
      "http://127.0.0.1:3030/hub" => ["http://127.0.0.1:3030#{known}/hub", "#{known}/hub"],
      "http://[::1]:3030/hub?tenant=a" => ["http://[::1]:3030#{known}/hub?tenant=a", "#{known}/hub"],
      "https://hub.example.com?x=/y" => ["https://hub.example.com#{known}?x=/y", known],
      "https://hub.example.com/a#b" => ["https://hub.example.com#{known}/a", "#{known}/a"]
    }.each do |identifier, (url, path)|
      made = metadata(resource_identifier: identifier)
      assert_equal [url, path], [made.url, made.path]
      assert_equal identifier, made.document["resource"]
    end
  end

  test "an identifier that is no URL has no metadata URL, but the document is served below the hub's" do
    made = metadata(resource_identifier: "urn:example:hub")
    assert_nil made.url
    assert_equal "/.well-known/oauth-protected-resource/.well-known/mercure", made.path
    assert_equal "urn:example:hub", made.document["resource"]
  end

  test "the document holds what is so, and omits what is not" do
    assert_equal({
      "resource" => HUB_URL,
      "authorization_details_types_supported" => ["https://mercure.rocks/authorization-detail"],
      "bearer_methods_supported" => ["header"],
      "mercure_cookie" => "__Secure-mercure_access_token",
      "mercure_matcher_types_supported" => %w[exact urlpattern]
    }, JSON.parse(metadata.to_json))
    made = metadata(subscriptions: true, cookie_name: "hub", authorization_servers: ["https://as.example.com"]).document
    assert_equal true, made["mercure_subscriptions"]
    assert_equal ["https://as.example.com"], made["authorization_servers"]
    assert_equal "hub", made["mercure_cookie"]
    refute metadata(cookie_name: nil).document.key?("mercure_cookie")
  end

  test "the answer is JSON that any page may read and keep for a while" do
    status, headers, body = metadata.response
    assert_equal 200, status
    assert_equal "application/json", headers["content-type"]
    assert_equal "public, max-age=3600", headers["cache-control"]
    assert_equal "*", headers["access-control-allow-origin"]
    assert_equal metadata.document, JSON.parse(body.join)
    refute_predicate headers, :frozen?
  end
end
