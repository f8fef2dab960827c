# frozen_string_literal: true

require "test_helper"
require "rack/lint"
require "rack/mock_request"
require "jwt"
require "openssl"
require "hikyaku/config"
require "hikyaku/web/developer_page"

# The server's side of the developer page: files, settings, and the three helpers.
class DeveloperPageTest < Minitest::Test
  SECRET = "a secret of this test, long enough for HS256"
  ORIGIN = "http://127.0.0.1:3030"

  # Records what it is asked.
  class Explainer
    attr_reader :asked

    def explain(token, role)
      @asked = [token, role]
      {valid: false, checks: [{check: "form", ok: false, message: "It is no JWT."}]}
    end
  end

  def configure(**more) = Hikyaku::Config.new(dev: true, publisher_key: SECRET, subscriber_key: SECRET, **more)

  def ui(config = configure, **more) = Hikyaku::Web::DeveloperPage.new(config: config, authorization: @explainer ||= Explainer.new, **more)

  # Through Rack::Lint, so that every answer here is also a valid Rack response.
  def request(method, path, ui: @developer_page ||= ui(configure), **env)
    below = path.delete_prefix("/.well-known/mercure/ui")
    app = Rack::Lint.new(->(rack) { ui.call(below, rack) })
    Rack::MockRequest.new(app).request(method, "#{ORIGIN}/.well-known/mercure/ui#{below}", {"HTTP_HOST" => "127.0.0.1:3030"}.merge(env))
  end

  def post(path, body, ui: @developer_page ||= ui(configure), **env)
    body = JSON.generate(body) unless body.is_a?(String)
    request("POST", path, :ui => ui, "CONTENT_TYPE" => "application/json", :input => body, **env)
  end

  def detail(response) = JSON.parse(response.body).fetch("detail")

  test "the page and every file that it names are served, with the right type and a strict policy" do
    page = request("GET", "/")
    assert_equal 200, page.status
    assert_equal "text/html; charset=utf-8", page["content-type"]
    names = page.body.scan(/(?:src|href)="([^"#]+)"/).flatten.uniq
    assert_includes names, "app.js"
    names.each do |name|
      refute_match(%r{//|^/}, name)
      response = request("GET", "/#{name}")
      assert_equal 200, response.status, name
      assert_match({"js" => %r{\Atext/javascript}, "css" => %r{\Atext/css}, "svg" => %r{\Aimage/svg\+xml}}.fetch(name[/\w+\z/]), response["content-type"])
      assert_equal "nosniff", response["x-content-type-options"]
      assert_equal "no-referrer", response["referrer-policy"]
      assert_equal "no-cache", response["cache-control"]
      assert_match(/default-src 'self'/, response["content-security-policy"])
      refute_match(/unsafe|https?:|\*/, response["content-security-policy"])
    end
  end

  test "every module that a module imports is served" do
    names = Dir.children(File.expand_path("../../lib/hikyaku/web/developer_page/page", __dir__)).grep(/\.js\z/)
    imports = names.flat_map { |name| request("GET", "/#{name}").body.scan(/from "\.\/([^"]+)"/).flatten }.uniq
    assert_operator imports.size, :>, 10
    imports.each { |name| assert_equal 200, request("GET", "/#{name}").status, name }
  end

  test "no file holds an inline script or style, an event attribute, another host, or builds markup from text" do
    folder = File.expand_path("../../lib/hikyaku/web/developer_page/page", __dir__)
    Dir.children(folder).each do |name|
      text = File.read(File.join(folder, name))
      refute_match(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/, text, name)
      assert_empty text.scan(%r{https?://[^\s"'`<>)]+}).grep_v(%r{\Ahttps?://(example\.com|www\.w3\.org/2000/svg)}), name
      next unless name.end_with?(".html")
      assert_empty text.scan(/<script[^>]*>/).grep_v(/src="/)
      refute_match(/<style|\sstyle=|\son\w+=|javascript:/i, text)
    end
  end

  test "without the last slash the page is at the address with it, wherever the hub is mounted" do
    response = request("GET", "")
    assert_equal 308, response.status
    assert_equal "ui/", response["location"]
  end

  test "a file that is still the same is not sent again" do
    etag = request("GET", "/app.js")["etag"]
    [etag, "W/#{etag}", "\"other\", #{etag}", "*"].each do |known|
      again = request("GET", "/app.js", "HTTP_IF_NONE_MATCH" => known)
      assert_equal [304, ""], [again.status, again.body], known
      assert_equal etag, again["etag"]
    end
    assert_equal 200, request("GET", "/app.js", "HTTP_IF_NONE_MATCH" => '"other"').status
  end

  test "HEAD answers like GET without the body, and other methods are refused" do
    get = request("GET", "/page.css")
    head = request("HEAD", "/page.css")
    assert_equal [200, "", get["content-length"]], [head.status, head.body, head["content-length"]]
    %w[POST PUT DELETE PATCH].each do |method|
      response = request(method, "/page.css")
      assert_equal [405, "GET, HEAD"], [response.status, response["allow"]], method
    end
  end

  test "nothing but the files of the table can be asked for" do
    %w[/../ui.rb /..%2Fui.rb /%2e%2e/ui.rb //etc/passwd /page/app.js /./app.js /app.js/ /app.js%00 /APP.JS /.. /mint.rb].each do |path|
      response = ui.call(path, Rack::MockRequest.env_for("/"))
      assert_equal 404, response[0], path
      assert_equal "application/problem+json", response[1]["content-type"]
    end
  end

  test "the settings say what the page must know, and no secret" do
    settings = JSON.parse(request("GET", "/config.json").body)
    assert_equal "/.well-known/mercure", settings["hub_path"]
    assert_equal Hikyaku::VERSION, settings["version"]
    assert_equal({"publisher" => true, "subscriber" => true, "together" => true}, settings["mint"])
    assert_equal [true, true, true], settings.values_at("legacy", "anonymous", "subscriptions")
    refute_includes request("GET", "/config.json").body, SECRET
    other = ui(configure(path: "/hub", legacy: false, cookie_name: "t"))
    assert_equal ["/hub", false, "t"], JSON.parse(request("GET", "/config.json", ui: other).body).values_at("hub_path", "legacy", "cookie_name")
  end

  test "a token that is made carries every claim that RFC 9068 asks for, and what was asked" do
    # Mercure draft-08, sections "Token Validation" and "Authorization Details".
    response = post("/token", {publish: ["a"], subscribe: [{match: "/b/:id", match_type: "urlpattern"}], payload: {team: 1}, expires_in: 60})
    assert_equal [200, "no-store"], [response.status, response["cache-control"]]
    claims, header = JWT.decode(JSON.parse(response.body).fetch("token"), SECRET, true, algorithm: "HS256")
    assert_equal "at+jwt", header["typ"]
    assert_empty %w[iss exp aud sub client_id iat jti authorization_details] - claims.keys
    assert_equal ["hikyaku", "http://127.0.0.1:3030/.well-known/mercure", 60], [claims["iss"], claims["aud"], claims["exp"] - claims["iat"]]
    type = "https://mercure.rocks/authorization-detail"
    assert_equal [
      {"type" => type, "actions" => ["publish"], "topics" => [{"match" => "a"}]},
      {"type" => type, "actions" => ["subscribe"], "topics" => [{"match" => "/b/:id", "match_type" => "urlpattern"}], "payload" => {"team" => 1}}
    ], claims["authorization_details"]
  end

  test "a token of the 0.x form carries the claim of that form" do
    response = post("/token", {publish: ["a"], subscribe: ["*"], legacy: true})
    claims, header = JWT.decode(JSON.parse(response.body).fetch("token"), SECRET, true, algorithm: "HS256")
    assert_equal ["JWT", {"publish" => ["a"], "subscribe" => ["*"]}], [header["typ"], claims["mercure"]]
  end

  test "different keys for publishers and subscribers sign different tokens, never one" do
    ui = ui(configure(subscriber_key: SECRET.reverse))
    assert_equal({"publisher" => true, "subscriber" => true, "together" => false}, JSON.parse(request("GET", "/config.json", ui: ui).body)["mint"])
    token = JSON.parse(post("/token", {subscribe: ["a"]}, ui: ui).body).fetch("token")
    assert JWT.decode(token, SECRET.reverse, true, algorithm: "HS256")
    both = post("/token", {publish: ["a"], subscribe: ["a"]}, ui: ui)
    assert_equal 400, both.status
    assert_match(/different keys/, detail(both))
  end

  test "a private key signs tokens with its algorithm; a public key cannot, and the page is told" do
    {
      "ES256" => OpenSSL::PKey::EC.generate("prime256v1"), "RS256" => OpenSSL::PKey::RSA.new(2048),
      "EdDSA" => OpenSSL::PKey.generate_key("ED25519")
    }.each do |algorithm, key|
      private_pem = key.respond_to?(:private_to_pem) ? key.private_to_pem : key.to_pem
      signing = ui(configure(publisher_key: private_pem, subscriber_key: private_pem, alg: algorithm))
      token = JSON.parse(post("/token", {publish: ["a"]}, ui: signing).body).fetch("token")
      verifier = (algorithm == "EdDSA") ? Ed25519::VerifyKey.new(key.public_to_der.byteslice(12, 32)) : key
      assert JWT.decode(token, verifier, true, algorithm: algorithm), algorithm

      public_only = ui(configure(publisher_key: key.public_to_pem, subscriber_key: key.public_to_pem, alg: algorithm))
      assert_nil JSON.parse(request("GET", "/config.json", ui: public_only).body)["mint"], algorithm
      refused = post("/token", {publish: ["a"]}, ui: public_only)
      assert_equal 501, refused.status
    end
  end

  test "a request for a token that makes no sense is refused in one sentence" do
    {
      {publish: "a"} => /publish must be an array/, {subscribe: [1]} => /subscribe: each entry/, {publish: [{match: 1}]} => /each entry/,
      {publish: [{match: "a", more: 1}]} => /each entry/, {publish: ["a"] * 101} => /more than 100/,
      {expires_in: 0} => /expires_in/, {expires_in: "60"} => /expires_in/, {expires_in: 1e9} => /expires_in/, {payload: [1]} => /payload/
    }.each do |body, expected|
      response = post("/token", body)
      assert_equal [400, "application/problem+json"], [response.status, response["content-type"]], body.inspect
      assert_match expected, detail(response)
    end
  end

  test "an explanation is asked of the authorisation, for the role that is named" do
    response = post("/explain", {token: "x.y.z", role: "subscriber"})
    assert_equal [200, false], [response.status, JSON.parse(response.body)["valid"]]
    assert_equal ["x.y.z", :subscriber], @explainer.asked
    [{token: 1, role: "subscriber"}, {role: "subscriber"}, {token: "x"}, {token: "x", role: "admin"}, {token: "x", role: ["publisher"]}].each do |body|
      assert_equal 400, post("/explain", body).status, body.inspect
    end
  end

  test "the cookie is set so that no script can read it, and forgotten again" do
    # Mercure draft-08, section "Cookie".
    cookie = post("/cookie", {token: "abc.def-_~.g"})["set-cookie"]
    assert_equal "__Secure-mercure_access_token=abc.def-_~.g; Path=/.well-known/mercure; HttpOnly; SameSite=Strict; Secure", cookie
    assert_match(/token=; .*; Max-Age=0\z/, post("/cookie", {token: nil})["set-cookie"])
    plain = ui(configure(cookie_name: "t", path: "/hub"))
    assert_equal "t=a; Path=/hub; HttpOnly; SameSite=Strict", post("/cookie", {token: "a"}, ui: plain)["set-cookie"]
  end

  test "what could leave the cookie's value is refused" do
    ["a;b", "a b", "a\r\nx: y", "a\u0000", "", "é", "a" * 3_801, 5, ["a"]].each do |token|
      response = post("/cookie", {token: token})
      assert_equal 400, response.status, token.inspect
      assert_nil response["set-cookie"]
    end
  end

  test "other sites cannot use the helpers, whatever they claim to be" do
    strangers = [
      {"HTTP_ORIGIN" => "https://evil.example"}, {"HTTP_ORIGIN" => "null"}, {"HTTP_ORIGIN" => "http://127.0.0.1:3031"},
      {"HTTP_ORIGIN" => "http://127.0.0.1:3030.evil.example"}, {"HTTP_ORIGIN" => ""}, {"HTTP_SEC_FETCH_SITE" => "cross-site"},
      {"HTTP_ORIGIN" => ORIGIN, "HTTP_SEC_FETCH_SITE" => "same-site"}, {"HTTP_ORIGIN" => "http://user@127.0.0.1:3030"},
      # A name that was pointed at this machine: same origin for the browser, unknown to the hub.
      {"HTTP_ORIGIN" => "http://rebound.example:3030", "HTTP_HOST" => "rebound.example:3030", "HTTP_SEC_FETCH_SITE" => "same-origin"}
    ]
    %w[/token /explain /cookie].product(strangers).each do |path, env|
      assert_equal 403, post(path, {token: "a", role: "publisher"}, **env).status, "#{path} #{env}"
    end
  end

  test "the page itself, by whatever name this machine has, and programs that are no browser may use them" do
    friends = [
      {}, {"HTTP_ORIGIN" => ORIGIN, "HTTP_SEC_FETCH_SITE" => "same-origin"},
      {"HTTP_ORIGIN" => "http://localhost:3030", "HTTP_HOST" => "localhost:3030"},
      {"HTTP_ORIGIN" => "http://hub.localhost:3030", "HTTP_HOST" => "hub.localhost:3030"},
      {"HTTP_ORIGIN" => "http://[::1]:3030", "HTTP_HOST" => "[::1]:3030"},
      {"HTTP_ORIGIN" => "http://192.168.0.7:3030", "HTTP_HOST" => "192.168.0.7:3030"},
      # Behind a proxy that ends TLS.
      {"HTTP_ORIGIN" => "https://127.0.0.1:3030"}, {"HTTP_HOST" => "rebound.example:3030"}
    ]
    friends.each { |env| assert_equal 200, post("/token", {publish: ["a"]}, **env).status, env.inspect }
    named = ui(configure(resource_identifier: "https://hub.example.com/.well-known/mercure"))
    env = {"HTTP_ORIGIN" => "https://hub.example.com", "HTTP_HOST" => "hub.example.com"}
    assert_equal 200, post("/token", {publish: ["a"]}, ui: named, **env).status
  end

  test "a body that is no JSON object, too large, or of another type is refused" do
    ["", "[]", "1", "{", "nul", "\xff{}".b, "{\"a\":\"\xff\"}".b, "[" * 5000].each do |body|
      assert_equal 400, post("/token", body).status, body.inspect[0, 20]
    end
    assert_equal 413, post("/token", {publish: ["a" * 65_536]}).status
    # What a form of another site can send without asking.
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""].each do |type|
      assert_equal 415, post("/token", {publish: ["a"]}, "CONTENT_TYPE" => type).status, type.inspect
    end
    %w[GET HEAD PUT DELETE].each { |method| assert_equal [405, "POST"], request(method, "/token").then { |r| [r.status, r["allow"]] } }
  end
end
