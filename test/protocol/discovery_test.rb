# frozen_string_literal: true

require "support/protocol_test"

# Mercure draft-08, section "Discovery"; RFC 9728.
class Protocol::DiscoveryTest < Protocol::Test
  METADATA = "/.well-known/oauth-protected-resource/.well-known/mercure"

  test "the metadata says what a client must know to get a token (Protected Resource Metadata)" do
    response = get(METADATA)
    assert_equal 200, response.status
    assert_equal "application/json", response["content-type"]
    assert_equal({
      "resource" => "https://hub.example.com/.well-known/mercure", "authorization_details_types_supported" => ["https://mercure.rocks/authorization-detail"],
      "bearer_methods_supported" => ["header"], "mercure_cookie" => "__Secure-mercure_access_token", "mercure_matcher_types_supported" => %w[exact urlpattern], "mercure_subscriptions" => true
    }, response.json)
  end

  test "members that do not apply are left out, not null or false (Protected Resource Metadata)" do
    start(subscriptions: false, cookie_name: "c")
    document = get(METADATA).json
    refute document.key?("mercure_subscriptions")
    refute document.key?("authorization_servers")
    assert_equal "c", document["mercure_cookie"]
  end

  test "the path of the metadata is derived from the hub's URL, whatever its path (Protected Resource Metadata; RFC 9728, section 3)" do
    {"https://hub.example.com/live/hub" => "/.well-known/oauth-protected-resource/live/hub", "https://hub.example.com/hub" => "/.well-known/oauth-protected-resource/hub"}.each do |url, path|
      @own&.stop
      start(path: url.delete_prefix("https://hub.example.com"), resource_identifier: url)
      assert_equal url, get(path).json["resource"]
      assert_problem 404, get(METADATA)
      challenge = post({"topic" => "a"}, token: nil)["www-authenticate"]
      assert_includes challenge, %(resource_metadata="https://hub.example.com#{path}")
    end
  end

  test "the challenge points to a document that is there, and names the audience that is checked (Protected Resource Metadata)" do
    url = post({"topic" => "a"}, token: nil)["www-authenticate"][/resource_metadata="([^"]+)"/, 1]
    identifier = get(url.delete_prefix("https://hub.example.com")).json["resource"]
    assert_equal 200, post({"topic" => topic}, token: token(:publisher, "*", aud: identifier)).status
    assert_equal 401, post({"topic" => topic}, token: token(:publisher, "*", aud: "#{identifier}/")).status
  end

  test "it needs no token, is everybody's to read, and may be cached" do
    start(anonymous: false)
    response = get(METADATA, headers: {"origin" => "https://any.example"})
    assert_equal 200, response.status
    assert_equal "*", response["access-control-allow-origin"]
    assert_nil response["access-control-allow-credentials"]
    assert_match(/max-age=\d+/, response["cache-control"])
  end

  test "HEAD and OPTIONS of it, and nothing else" do
    head = get(METADATA, method: "HEAD")
    assert_equal [200, "application/json", ""], [head.status, head["content-type"], head.body]
    assert_equal 204, get(METADATA, method: "OPTIONS").status
    %w[POST PUT DELETE].each { |method| assert_problem 405, client.request(method, METADATA), method }
  end

  test "a hub whose identifier is no URL has its metadata where the hub is, and no link to it" do
    start(resource_identifier: "urn:example:hub", listen: "127.0.0.1:3030")
    assert_equal "urn:example:hub", get(METADATA).json["resource"]
    assert_equal 200, post({"topic" => topic}, token: token(:publisher, "*", aud: "urn:example:hub")).status
  end

  test "a Link value for applications: hub, cursor, type and content type, each safely quoted (Hub Discovery)" do
    link = Hikyaku::Web::LinkHeader.hub("https://hub.example.com/.well-known/mercure", last_event_id: "urn:\"a\\b\"", type: "book", content_type: "application/json")
    assert_equal '<https://hub.example.com/.well-known/mercure>; rel="mercure"; last-event-id="urn:\"a\\\\b\""; type="book"; content-type="application/json"', link
    assert_equal '<https://hub.example.com/>; rel="mercure"', Hikyaku::Web::LinkHeader.hub("https://hub.example.com/")
    refute_match(/[<>\s]/, Hikyaku::Web::LinkHeader.hub("https://a/>; rel=\"x\"\r\nx: y")[/\A<(.*)>; rel="mercure"\z/m, 1])
  end
end
