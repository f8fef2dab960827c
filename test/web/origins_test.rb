# frozen_string_literal: true

require "test_helper"
require "hikyaku/web/origins"

class OriginsTest < Minitest::Test
  APP = "https://app.example.com"
  HUB = "https://hub.example.com/.well-known/mercure"
  ALLOW = "access-control-allow-origin"
  CREDENTIALS = "access-control-allow-credentials"

  def origins(*cors, publish: [], hub_url: HUB) = Hikyaku::Web::Origins.new(cors_origins: cors, publish_origins: publish, hub_url: hub_url)

  def env(origin = nil, **more) = {"REQUEST_METHOD" => "GET", "HTTP_ORIGIN" => origin}.compact.merge(more.transform_keys(&:to_s))

  # Mercure draft-08, section "Subscription": the CORS protocol.
  test "an origin on the list may read with credentials, and is told what it may see" do
    headers = origins(APP, "http://localhost:5173").headers(env(APP))
    assert_equal({
      "vary" => "origin", ALLOW => APP, CREDENTIALS => "true",
      "access-control-expose-headers" => "link, mercure-last-event-id, last-event-id, www-authenticate, retry-after, hikyaku-stream"
    }, headers)
    assert_equal "http://localhost:5173", origins(APP, "http://localhost:5173").headers(env("http://localhost:5173"))[ALLOW]
  end

  test "an origin that is not on the list is never reflected, and the answer still varies" do
    ["https://app.example.com.evil.example", "https://evil.example", "http://app.example.com", "https://app.example.com:8443", "https://APP.example.com",
      "https://xapp.example.com", "#{APP}/", "null", "", "*", "#{APP} https://evil.example", "https://app.example.com\u0000", nil].each do |origin|
      assert_equal({"vary" => "origin"}, origins(APP).headers(env(origin)), origin.inspect)
    end
  end

  test "the star lets any page in without credentials" do
    ["https://evil.example", "null", nil].each do |origin|
      headers = origins("*").headers(env(origin))
      assert_equal "*", headers[ALLOW]
      refute headers.key?(CREDENTIALS)
      refute headers.key?("vary")
      assert headers.key?("access-control-expose-headers")
    end
  end

  test "beside the star those on the list keep their credentials" do
    assert_equal [APP, "true", "origin"], origins("*", APP).headers(env(APP)).values_at(ALLOW, CREDENTIALS, "vary")
    assert_equal ["*", nil, "origin"], origins("*", APP).headers(env("https://other.example")).values_at(ALLOW, CREDENTIALS, "vary")
  end

  test "without a list there are no headers" do
    assert_equal({}, origins.headers(env(APP)))
    assert_equal [204, {"allow" => "GET, HEAD, QUERY, POST, DELETE, OPTIONS"}, []], origins.preflight(env(APP))
  end

  test "a preflight is answered with what the hub understands" do
    status, headers, body = origins(APP).preflight(env(APP, REQUEST_METHOD: "OPTIONS"))
    assert_equal [204, []], [status, body]
    assert_equal [APP, "true", "origin"], headers.values_at(ALLOW, CREDENTIALS, "vary")
    assert_equal "GET, HEAD, QUERY, POST, DELETE", headers["access-control-allow-methods"]
    assert_equal %w[authorization cache-control content-type hikyaku-stream idempotency-key last-event-id], headers["access-control-allow-headers"].split(", ").sort
    assert_equal "7200", headers["access-control-max-age"]
    assert_equal ["*", nil], origins("*").preflight(env("https://x.example"))[1].values_at(ALLOW, CREDENTIALS)
  end

  test "a preflight from elsewhere allows nothing" do
    [nil, "null", "https://evil.example"].each do |origin|
      status, headers, = origins(APP).preflight(env(origin))
      assert_equal 204, status
      assert_equal({"allow" => "GET, HEAD, QUERY, POST, DELETE, OPTIONS", "vary" => "origin"}, headers)
    end
  end

  test "settings are compared as browsers write origins" do
    ["HTTPS://App.Example.com", "#{APP}/", "#{APP}:443"].each { |given| assert_equal APP, origins(given).headers(env(APP))[ALLOW] }
    assert_equal "http://app.example.com", origins("http://app.example.com:80").headers(env("http://app.example.com"))[ALLOW]
    assert_equal "http://[::1]:3000", origins("http://[::1]:3000").headers(env("http://[::1]:3000"))[ALLOW]
    assert_equal "capacitor://localhost", origins("capacitor://localhost").headers(env("capacitor://localhost"))[ALLOW]
  end

  test "settings that are no origin are refused" do
    ["null", "app.example.com", "#{APP}/path", "https://*.example.com", "https://", "", "https://user@app.example.com", "https://a b", "https://a,b//c", nil, 1].each do |wrong|
      assert_match(/\Acors_origins: /, assert_raises(Hikyaku::ConfigError, wrong.inspect) { origins(wrong) }.message)
      assert_match(/\Apublish_origins: /, assert_raises(Hikyaku::ConfigError, wrong.inspect) { origins(publish: [wrong]) }.message)
    end
  end

  test "the origin null cannot be on a list" do
    assert_match(/null is anybody's/, assert_raises(Hikyaku::ConfigError) { origins("null") }.message)
  end

  # Section "Security Considerations": the source origin against the target origin.
  def allowed?(method = "POST", list: origins(publish: [APP]), **more)
    list.publish_allowed?({"REQUEST_METHOD" => method, "HTTP_HOST" => "10.0.0.5:3030", "rack.url_scheme" => "http"}.merge(more.transform_keys(&:to_s)))
  end

  test "a page of the hub's own origin, or of the list, may publish with the cookie" do
    ["https://hub.example.com", APP].each do |origin|
      assert allowed?(HTTP_ORIGIN: origin), origin
      assert allowed?(HTTP_REFERER: "#{origin}/some/page?x=1"), origin
      assert allowed?(HTTP_REFERER: origin), origin
      assert allowed?(HTTP_ORIGIN: origin, HTTP_REFERER: "https://evil.example/"), "Origin counts"
    end
  end

  test "what a request says in Host makes no origin the hub's own" do
    ["evil.example", "hub.example.com", "10.0.0.5:3030", "localhost"].each do |host|
      refute allowed?(HTTP_ORIGIN: "http://evil.example", HTTP_HOST: host)
      refute allowed?(HTTP_REFERER: "http://#{host}/", HTTP_HOST: host), host
      assert allowed?(HTTP_ORIGIN: "https://hub.example.com", HTTP_HOST: host)
    end
  end

  test "a hub on this machine is known by each of its names, at its port" do
    %w[localhost 127.0.0.1 [::1]].each do |name|
      list = origins(hub_url: "http://#{name}:3030/.well-known/mercure")
      %w[http://localhost:3030 http://127.0.0.1:3030 http://[::1]:3030].each { |origin| assert allowed?(list: list, HTTP_ORIGIN: origin), origin }
      %w[http://localhost https://localhost:3030 http://127.0.0.1:3031 http://127.0.0.2:3030 http://localhost.evil.example:3030 http://10.0.0.5:3030].each { |origin| refute allowed?(list: list, HTTP_ORIGIN: origin), origin }
    end
  end

  test "any other page may not" do
    ["https://evil.example", "http://hub.example.com", "https://hub.example.com:444", "https://hub.example.com.evil.example", "null", "https://xhub.example.com",
      "http://10.0.0.5", "http://10.0.0.5:3030", "http://localhost", "http://127.0.0.1:3030", "file://", "hub.example.com"].each do |origin|
      refute allowed?(HTTP_ORIGIN: origin), origin
      refute allowed?(HTTP_REFERER: "#{origin}/"), origin
      refute allowed?(HTTP_ORIGIN: origin, HTTP_REFERER: "https://hub.example.com/"), "Origin counts: #{origin}"
    end
    ["https://hub.example.com@evil.example/", "https://evil.example/https://hub.example.com/", "https://evil.example\\@hub.example.com/", "https://evil.example?https://hub.example.com",
      "//hub.example.com/", "about:client", "https:hub.example.com", "\xFF"].each { |referer| refute allowed?(HTTP_REFERER: referer), referer }
  end

  test "without Origin and Referer nobody may" do
    [{}, {HTTP_ORIGIN: ""}, {HTTP_REFERER: ""}, {HTTP_ORIGIN: "", HTTP_REFERER: ""}].each do |headers|
      refute allowed?(**headers)
      refute allowed?(list: origins(publish: ["*"]), **headers)
    end
    assert allowed?(HTTP_ORIGIN: "", HTTP_REFERER: "#{APP}/")
  end

  test "the star lets any page publish" do
    ["https://evil.example", "null"].each { |origin| assert allowed?(list: origins(publish: ["*"]), HTTP_ORIGIN: origin) }
  end

  test "requests that change nothing are not asked" do
    %w[GET HEAD QUERY OPTIONS].each { |method| assert allowed?(method) }
    %w[POST DELETE PUT PATCH post].each { |method| refute allowed?(method) }
  end

  test "what the request says of the host that it was sent to makes no origin the hub's own" do
    list = origins(hub_url: nil)
    env = {"REQUEST_METHOD" => "POST", "HTTP_HOST" => "internal", "rack.url_scheme" => "http", "HTTP_ORIGIN" => "http://internal"}
    refute list.publish_allowed?(env)
    refute list.publish_allowed?({"REQUEST_METHOD" => "POST", "HTTP_ORIGIN" => "http://x"})
    refute list.publish_allowed?({"REQUEST_METHOD" => "POST", "HTTP_REFERER" => "about:blank"})
  end
end
