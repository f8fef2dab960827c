# frozen_string_literal: true

require "test_helper"
require "support/rails_application"
require "minitest/mock"
require "rack/mock"
require "support/misbehaving"

# What a Rails application gets, seen from its outside: requests, cookies, notifications, the log.
class RailtieTest < Minitest::Test
  HUB = "/.well-known/mercure"
  METADATA = "/.well-known/oauth-protected-resource#{HUB}"

  def setup
    Hikyaku.reset
    RailsApplication::LOG.truncate(0)
    RailsApplication::LOG.rewind
  end

  def teardown
    Hikyaku.web&.shutdown
    Hikyaku.reset
  end

  test "the hub answers at its path before any other middleware sees the request" do
    assert_equal "Hikyaku::Railtie::Middleware", Rails.application.middleware.first.name
    response = request("GET", HUB)
    assert_equal [400, "application/problem+json"], [response.status, response["content-type"]]
    refute response.headers.key?("x-request-id")
  end

  test "QUERY, which Rails does not know, reaches the hub (draft-08, Subscription)" do
    response = request("QUERY", HUB, :input => "unknown=1", "CONTENT_TYPE" => "application/x-www-form-urlencoded")
    assert_equal 400, response.status
    assert_match(/no topic is asked for/, response.body)
  end

  test "a subscription is a stream, and what the application publishes goes into it" do
    status, headers, body = call("GET", "#{HUB}?match=/books/1")
    assert_equal [200, "text/event-stream"], [status, headers["content-type"]]
    Hikyaku.publish("/books/1", {stock: 3})
    assert_includes streamed(body), %(data: {"stock":3})
  end

  test "the metadata are where RFC 9728 has them" do
    document = JSON.parse(request("GET", METADATA).body)
    assert_equal "http://localhost:3000#{HUB}", document.fetch("resource")
    assert_equal "mercure_access_token", document.fetch("mercure_cookie")
  end

  test "other requests pass untouched, those whose path only looks alike too" do
    assert_equal 200, request("GET", "/books/1").status
    assert_raises(ActionController::RoutingError) { request("GET", "#{HUB}x") }
  end

  test "a controller knows the correlation of a request, and takes nothing else for one" do
    correlation = "0123456789abcdef" * 2
    assert_equal [correlation], JSON.parse(request("POST", "/send_back", "HTTP_HIKYAKU_CORRELATION" => correlation).body)
    [nil, "", "a", correlation * 2, "#{correlation}\n", "g" * 32, "#{correlation[1..]} ", "x\n#{correlation}"].each do |other|
      assert_equal [nil], JSON.parse(request("POST", "/send_back", "HTTP_HIKYAKU_CORRELATION" => other).body), other.inspect
    end
  end

  test "a host that the application does not know is not served by the hub either" do
    assert_equal 403, request("GET", "http://evil.example#{HUB}?match=*").status
  end

  test "with force_ssl, plain HTTP is left to Rails, except for what Rails cannot answer" do
    config = Rails.application.config
    config.force_ssl = true
    stack = Hikyaku::Railtie::Middleware.new(->(_env) { [301, {}, []] })
    assert_equal 301, stack.call(env("GET", HUB)).first
    status, _, body = stack.call(env("QUERY", HUB))
    assert_equal 403, status
    assert_match(/https/, body.first)
    assert_equal 400, stack.call(env("GET", "https://localhost#{HUB}")).first
  ensure
    config.force_ssl = false
  end

  test "without the route the hub is not there" do
    routes = ActionDispatch::Routing::RouteSet.new
    Rails.application.stub(:routes, -> { routes }) do
      refute Hikyaku::Railtie.mount.serves?(env("GET", HUB))
    end
  end

  test "the route stands outside of scopes" do
    error = assert_raises(ArgumentError) { ActionDispatch::Routing::RouteSet.new.draw { scope("/x") { hikyaku } } }
    assert_match(/config\.hikyaku\.path/, error.message)
  end

  test "the route alone serves the hub too" do
    Hikyaku::Railtie::Middleware.class_eval { alias_method :taking, :call }
    Hikyaku::Railtie::Middleware.define_method(:call) { |env| @app.call(env) }
    assert_match(/no topic is asked for/, request("GET", HUB).body)
    assert_equal 200, request("GET", METADATA).status
  ensure
    Hikyaku::Railtie::Middleware.class_eval do
      alias_method :call, :taking
      remove_method :taking
    end
  end

  test "a server with several processes, of which nobody knew, is told and publishes to nobody" do
    Hikyaku.start(anonymous: true)
    mount = Hikyaku::Railtie::Mount.new(Hikyaku::Railtie.mount.settings)
    with_mount(mount) do
      response = request("GET", "#{HUB}?match=*", "rack.multiprocess" => true)
      assert_equal 503, response.status
      assert_match(/config\.hikyaku\.hub/, JSON.parse(response.body).fetch("detail"))
      assert_nil Hikyaku.web
      assert_match(/Hikyaku: the server has several processes/, log)
    end
  end

  test "a token can be dated from before the session was read: a sign-out that came meanwhile holds for it" do
    began = Time.now.to_f.round(3)
    token = request("POST", "/enter?issued_at=#{began}")["set-cookie"][/\A[^;]+/]
    assert_equal began, JWT.decode(token.split("=", 2).last, nil, false).first["iat"]
    assert_equal 200, call("GET", "#{HUB}?match=/takings", "HTTP_COOKIE" => token).first
    Hikyaku.disconnect(subject: "user-7", revoke: true)
    later = request("POST", "/enter?issued_at=#{began}")["set-cookie"][/\A[^;]+/]
    assert_equal 401, call("GET", "#{HUB}?match=/takings", "HTTP_COOKIE" => later).first
  end

  test "the cookie has the attributes of the specification, and its token opens the stream (draft-08, Cookie)" do
    response = request("POST", "/enter?expires_in=60")
    cookie = response["set-cookie"]
    name, token = cookie[/\A[^;]+/].split("=", 2)
    assert_equal "mercure_access_token", name
    attributes = cookie.split("; ").drop(1).map(&:downcase)
    assert_includes attributes, "path=#{HUB}"
    assert_includes attributes, "httponly"
    assert_includes attributes, "samesite=strict"
    refute_includes attributes, "secure"
    claims = JWT.decode(token, nil, false).first
    assert_equal ["user-7", "http://localhost:3000#{HUB}", 60], [claims["sub"], claims["aud"], claims["exp"] - claims["iat"]]

    _, _, body = call("GET", "#{HUB}?match=/takings", "HTTP_COOKIE" => "#{name}=#{token}")
    _, _, other = call("GET", "#{HUB}?match=/takings")
    Hikyaku.publish("/takings", "14", private: true)
    Hikyaku.publish("/takings", "public")
    assert_includes streamed(body, "public"), "data: 14"
    refute_includes streamed(other, "public"), "data: 14"
  end

  test "over https the cookie is secure, and a subject may be told" do
    cookie = request("POST", "https://localhost/enter?subject=user-8")["set-cookie"]
    assert_match(/; secure/i, cookie)
    assert_equal "user-8", JWT.decode(cookie[/=([^;]+)/, 1], nil, false).first["sub"]
  end

  test "who signs out loses the cookie" do
    assert_match(/\Amercure_access_token=; path=#{HUB}; expires=Thu, 01 Jan 1970/io, request("POST", "/leave")["set-cookie"])
  end

  test "a token that no browser would keep is refused" do
    error = assert_raises(ArgumentError) { request("POST", "/too_much") }
    assert_match(/too large for a cookie/, error.message)
  end

  test "a resource tells where its updates come from (draft-08, Hub Discovery)" do
    request("GET", HUB)
    id = Hikyaku.publish("/books/1", "new")
    link = request("GET", "/books/1")["link"]
    assert_equal %(<http://localhost#{HUB}>; rel="mercure"; last-event-id="#{id}"; type="book", <http://shop.example.com/books/1>; rel="self"), link
  end

  test "views know the URL to subscribe at" do
    body = CGI.unescapeHTML(request("GET", "/books/1").body)
    uri = URI(body)
    assert_equal HUB, uri.path
    assert_equal [["match", "/books/1"], ["match_urlpattern", "/a/:b"], ["match_urlpattern", "/c"], ["last_event_id", "#1&2"]], URI.decode_www_form(uri.query)
  end

  test "publishing and disconnecting are told to whoever listens, without data" do
    events = []
    listener = ActiveSupport::Notifications.subscribe(/\.hikyaku\z/) { |event| events << [event.name, event.payload] }
    id = Hikyaku.publish(["/books/1", "/latest"], {secret: "☃"}, private: true, type: "book")
    Hikyaku.disconnect(subject: "user-7")
    request("GET", "#{HUB}?authorization=hidden")
    assert_equal [
      ["publish.hikyaku", {topics: ["/books/1", "/latest"], private: true, type: "book", bytes: 16, id: id}],
      ["disconnect.hikyaku", {subject: "user-7", revoke: false, count: 0}],
      ["request.hikyaku", {method: "GET", path: HUB, status: 400}]
    ], events
    assert_match(/published 16 bytes, private, to \/books\/1, \/latest as #{Regexp.escape(id)}/, log)
    assert_match(/closed 0 streams of user-7/, log)
    assert_match(/GET #{HUB} 400/o, log)
    refute_match(/hidden|secret/, log)
  ensure
    ActiveSupport::Notifications.unsubscribe(listener)
  end

  test "what the HTTP client asks for is told, and logged, without its query" do
    require "hikyaku/http/client"
    events = []
    listener = ActiveSupport::Notifications.subscribe("request.hikyaku_http") { |event| events << event.payload.except(:seconds) }
    Misbehaving.run(:well_behaved) do |server|
      client = Hikyaku::HTTP::Client.new(memory: nil, proxy: nil)
      client.get(server.url("/a?token=hidden"))
      assert_raises(Hikyaku::HTTP::ConnectFailed) { client.get("http://127.0.0.1:1/b?hidden") }
      assert_equal [["GET", server.url("/a"), 200, nil], ["GET", "http://127.0.0.1:1/b", nil, "Hikyaku::HTTP::ConnectFailed"]], events.map { |payload| payload.values_at(:method, :url, :status, :error) }
      assert_match(/GET #{server.url("/a")} 200 \(\d/, log)
      assert_match(%r{GET http://127\.0\.0\.1:1/b Hikyaku::HTTP::ConnectFailed}, log)
      refute_match(/hidden/, log)
    end
  ensure
    ActiveSupport::Notifications.unsubscribe(listener)
  end

  test "a publish that fails is told too" do
    assert_raises(Hikyaku::InvalidTopic) { Hikyaku.publish("/books/\u202e", "x") }
    assert_match(/nothing: Hikyaku::InvalidTopic/, log)
  end

  private

  def log = RailsApplication::LOG.string.gsub(/\e\[\d*m/, "")

  def env(method, uri, **options)
    target = uri.start_with?("/") ? "http://localhost#{uri}" : uri
    Rack::MockRequest.env_for(target, :method => method, "HTTP_HOST" => URI(target[/\A[^?]+/]).host, **options)
  end

  def call(method, uri, **options) = Rails.application.call(env(method, uri, **options))

  def request(method, uri, **options)
    Rack::MockResponse[*call(method, uri, **options)]
  end

  def with_mount(mount)
    before = Hikyaku::Railtie.mount
    Hikyaku::Railtie.mount = mount
    yield
  ensure
    Hikyaku::Railtie.mount = before
  end

  # What a server would send, until it has sent this.
  def streamed(body, until_text = "\n\ndata", seconds: 60)
    ours, theirs = UNIXSocket.pair
    body.call(theirs)
    text = +""
    while !text.include?(until_text) && !text.match?(/^data: /) && ours.wait_readable(seconds)
      text << ours.readpartial(65_536)
    end
    text
  ensure
    ours&.close
  end
end
