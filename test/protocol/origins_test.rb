# frozen_string_literal: true

require "support/protocol_test"

# Pages of other origins: Mercure draft-08, sections "Subscription" (CORS), "Subscription API" and "Security
# Considerations" (CSRF); the Fetch standard's CORS protocol.
class Protocol::OriginsTest < Protocol::Test
  settings cors_origins: ["https://app.example", "http://localhost:3000"]

  APP = {"origin" => "https://app.example"}.freeze
  ALLOW = "access-control-allow-origin"
  CREDENTIALS = "access-control-allow-credentials"
  COOKIE = "__Secure-mercure_access_token"

  test "an origin on the list is let in, with credentials, in every kind of answer (Subscription)" do
    every_kind_of_answer(APP).each do |name, response|
      assert_equal "https://app.example", response[ALLOW], name
      assert_equal "true", response[CREDENTIALS], name
      assert_match(/\borigin\b/i, response["vary"].to_s, name)
    end
  end

  test "no other origin is let in, and none is reflected (Subscription)" do
    ["https://evil.example", "null", "https://app.example.evil.example", "https://evil-app.example", "http://app.example", "https://app.example:8443", "https://APP.example",
      "https://app.example/", "*", "https://app.example https://evil.example", ""].each do |origin|
      every_kind_of_answer("origin" => origin).each do |name, response|
        next if name == :metadata # which is everybody's
        assert_nil response[ALLOW], [origin, name].inspect
        assert_nil response[CREDENTIALS], [origin, name].inspect
        assert_match(/\borigin\b/i, response["vary"].to_s, "a cache must not give one origin's answer to another")
      end
    end
  end

  test "the wildcard lets every page read, and never with credentials (Subscription)" do
    start(cors_origins: ["*"])
    every_kind_of_answer("origin" => "https://any.example").each do |name, response|
      assert_equal "*", response[ALLOW], name
      assert_nil response[CREDENTIALS], name
    end
  end

  test "beside the wildcard, those who are named may send credentials (Subscription)" do
    start(cors_origins: ["*", "https://app.example"])
    assert_equal ["https://app.example", "true"], follow(topic, headers: APP).then { |stream| [stream[ALLOW], stream[CREDENTIALS]] }
    assert_equal ["*", nil], follow(topic, headers: {"origin" => "https://any.example"}).then { |stream| [stream[ALLOW], stream[CREDENTIALS]] }
  end

  test "a hub without origins sends no CORS fields (Subscription)" do
    start(cors_origins: [])
    every_kind_of_answer(APP).each { |name, response| assert_nil response[ALLOW], name unless name == :metadata }
  end

  test "pages may read the cursor and the Link (Subscription API; Reconnection)" do
    [follow(topic, headers: APP.merge("last-event-id" => "earliest")), get("#{server.path}/subscriptions", token: subscriber("*"), headers: APP)].each do |response|
      exposed = response["access-control-expose-headers"].downcase.split(/,\s*/)
      %w[link mercure-last-event-id www-authenticate retry-after].each { |name| assert_includes exposed, name }
    end
  end

  test "a preflight is answered with the methods and fields that the hub takes (Fetch, CORS-preflight)" do
    [server.path, "#{server.path}/subscriptions", "#{server.path}/subscriptions/exact/a", "#{server.path}/subscribers/x", "/.well-known/oauth-protected-resource#{server.path}"].each do |path|
      %w[GET POST QUERY DELETE].each do |method|
        response = client.request("OPTIONS", path, headers: APP.merge("access-control-request-method" => method, "access-control-request-headers" => "authorization,last-event-id,content-type"))
        assert_equal 204, response.status, path
        assert_equal "https://app.example", response[ALLOW]
        assert_equal "true", response[CREDENTIALS]
        %w[GET HEAD QUERY POST].each { |each| assert_includes response["access-control-allow-methods"].split(/,\s*/), each }
        fields = response["access-control-allow-headers"].downcase.split(/,\s*/)
        %w[authorization last-event-id content-type cache-control idempotency-key].each { |name| assert_includes fields, name }
        assert_match(/\A\d+\z/, response["access-control-max-age"])
      end
    end
  end

  test "a preflight needs no token, also where everything else does (Fetch)" do
    start(anonymous: false)
    assert_equal 204, client.request("OPTIONS", server.path, headers: APP.merge("access-control-request-method" => "POST")).status
    assert_equal 401, subscribe({"match" => topic}, headers: APP).status
  end

  test "a preflight of a stranger is answered without permission (Fetch)" do
    response = client.request("OPTIONS", server.path, headers: {"origin" => "https://evil.example", "access-control-request-method" => "POST"})
    assert_nil response[ALLOW]
    assert_nil response["access-control-allow-methods"]
  end

  test "with a cookie, publishing needs the Origin of the hub or of the list, or such a Referer (Security Considerations: CSRF)" do
    start(publish_origins: ["https://app.example"])
    good = [{"origin" => "https://hub.example.com"}, APP, {"referer" => "https://app.example/page?x#y"}, {"referer" => "https://hub.example.com/"}, {"origin" => "https://app.example", "referer" => "https://evil.example/"}]
    good.each { |headers| assert_equal 200, publish_with_cookie(headers).status, headers.inspect }
    bad = [{}, {"origin" => "https://evil.example"}, {"origin" => "null"}, {"origin" => ""}, {"referer" => ""}, {"referer" => "https://evil.example/https://app.example"}, {"origin" => "http://app.example"},
      {"origin" => "https://app.example.evil.example"}, {"referer" => "https://app.example@evil.example/"}, {"referer" => "https://app.example.evil.example/"}, {"referer" => "app.example"},
      {"origin" => "https://evil.example", "referer" => "https://app.example/"}, {"origin" => "null", "referer" => "https://app.example/"}, {"referer" => "https://evil.example\\@app.example/"},
      {"origin" => "https://app.example, https://evil.example"}, {"origin" => ["https://evil.example", "https://app.example"]}, {"referer" => "https://app.example:444/"}]
    bad.each { |headers| assert_challenge 400, "invalid_request", publish_with_cookie(headers), headers.inspect }
  end

  test "no Host makes an origin the hub's own (Security Considerations: CSRF)" do
    ["evil.example", "127.0.0.1:#{server.port}", "localhost"].each do |host|
      assert_challenge 400, "invalid_request", publish_with_cookie("host" => host, "origin" => "http://#{host}"), host
      assert_challenge 400, "invalid_request", publish_with_cookie("host" => host, "referer" => "http://#{host}/"), host
      assert_equal 200, publish_with_cookie("host" => host, "origin" => "https://hub.example.com").status
    end
  end

  test "an origin that may read may not publish by that alone (Security Considerations: CSRF)" do
    assert_challenge 400, "invalid_request", publish_with_cookie(APP)
  end

  test "no answer lets a browser guess its type (Fetch, X-Content-Type-Options)" do
    start(dev: true, metrics: true)
    answers = every_kind_of_answer(APP)
    ["/ui", "/ui/", "/ui/config.json", "/ui/nothing", "/streams/x", "/subscribers/x", "/%zz", "?#{"match=a&" * 101}"].each { |path| answers[path] = get("#{server.path}#{path}") }
    answers["redirect"] = get("/")
    answers["second stream"] = follow(topic)
    answers["third stream"] = follow(topic, headers: {"last-event-id" => "earliest", "hikyaku-stream" => "1"})
    2.times { |i| answers["again #{i}"] = post({"topic" => topic}, token: publisher_of_own) }
    answers["too large"] = post("topic=a&data=#{"x" * 1_100_000}", token: publisher_of_own)
    %w[/healthz /readyz /metrics /nothing *].each { |path| answers[path] = client.request((path == "*") ? "OPTIONS" : "GET", path) } if HubServer::OWN
    answers.each { |name, response| assert_equal "nosniff", response["x-content-type-options"], name.to_s }
    next unless HubServer::OWN
    ["GET / HTTP/1.1\r\n\r\n", "GET / HTTP/3.0\r\nhost: a\r\n\r\n", "nonsense\r\n\r\n", "GET /\r\n\r\n", "POST #{server.path} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nx\r\n",
      "POST #{server.path} HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n", "GET #{server.path}?#{"x" * 70_000} HTTP/1.1\r\nhost: a\r\n\r\n"].each do |bytes|
      response = client.raw(bytes)
      assert_operator response.status, :>=, 400, bytes[0, 40]
      assert_equal "nosniff", response["x-content-type-options"], bytes[0, 40]
    end
  end

  test "any origin may publish with a cookie where the setting says so, but not without naming one" do
    start(publish_origins: ["*"])
    assert_equal 200, publish_with_cookie("origin" => "https://any.example").status
    assert_challenge 400, "invalid_request", publish_with_cookie({})
  end

  test "with the header, publishing needs no origin: no page of another origin can send it unasked" do
    assert_equal 200, post("topic" => topic).status
    assert_equal 200, post({"topic" => topic}, headers: {"origin" => "https://evil.example"}).status
  end

  test "reading with a cookie needs no origin: the browser keeps the answer from strangers (Security Considerations)" do
    stream = subscribe({"match" => topic}, headers: {"cookie" => "#{COOKIE}=#{subscriber(topic)}", "origin" => "https://evil.example"})
    assert_equal 200, stream.status
    assert_nil stream[ALLOW]
  end

  test "closing streams with a cookie needs the origin too (Security Considerations: CSRF)" do
    cookie = {"cookie" => "#{COOKIE}=#{publisher}"}
    assert_challenge 400, "invalid_request", client.request("DELETE", "#{server.path}/subscribers/nobody", headers: cookie)
    assert_equal 200, client.request("DELETE", "#{server.path}/subscribers/nobody", headers: cookie.merge("origin" => "https://hub.example.com")).status
  end

  private

  # Whatever the hub is called, it takes a token for what it is called.
  def publisher_of_own = token(:publisher, "*")

  def publish_with_cookie(headers)
    post({"topic" => topic}, token: nil, headers: {"cookie" => "#{COOKIE}=#{publisher}"}.merge(headers))
  end

  def every_kind_of_answer(headers)
    {
      stream: follow(topic, headers: headers), head: get("#{server.path}?match=a", method: "HEAD", headers: headers), bad_request: get(server.path, headers: headers),
      published: post({"topic" => topic}, headers: headers), no_token: post({"topic" => topic}, token: nil, headers: headers), bad_token: post({"topic" => topic}, token: "x", headers: headers),
      subscriptions: get("#{server.path}/subscriptions", token: subscriber("*"), headers: headers), not_found: get("/x", headers: headers), method: client.request("PUT", server.path, headers: headers),
      metadata: get("/.well-known/oauth-protected-resource/.well-known/mercure", headers: headers), preflight: client.request("OPTIONS", server.path, headers: headers)
    }
  end
end
