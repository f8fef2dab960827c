# frozen_string_literal: true

require "test_helper"
require "cgi"
require "digest"
require "hikyaku/codec/rack/explorer"
require "json"
require "msgpack"
require "rack/lint"
require "rack/mock_request"
require "zlib"

class CodecRackExplorerTest < Minitest::Test
  Explorer = Hikyaku::Codec::Rack::Explorer
  ITEMS = {"items" => Array.new(20) { |index| {"id" => index, "name" => "Item #{index}", "data" => "<b>&\e[31m"} }}.freeze
  LOCAL = {"REMOTE_ADDR" => "127.0.0.1", "HTTP_HOST" => "localhost:3000"}.freeze

  def setup
    @asked = []
  end

  # Answers as it is asked, and remembers how it was.
  def application
    lambda do |env|
      @asked << env
      case env["PATH_INFO"]
      when "/items" then items(env)
      when "/json" then [200, {"content-type" => "application/json"}, ['{"a": 1}']]
      when "/html" then [200, {"content-type" => "text/html; x=<script>"}, ["<script>alert(1)</script>"]]
      when "/raises" then raise "no <b>moon</b>\e[31m\u202e\xff"
      when "/long" then [200, {"content-type" => "application/json"}, Enumerator.new { |body| loop { body << "[1,2,3]\n" * 1000 } }]
      when "/events" then [200, {"content-type" => "text/event-stream"}, Enumerator.new { |_| flunk "it never ends" }]
      when "/writes" then [200, {"content-type" => "application/json"}, ->(_) { flunk "there is no connection" }]
      when "/broken" then [200, {"content-type" => "application/vnd.msgpack"}, ["\x92\x01".b]]
      when "/empty" then [204, {}, []]
      else [404, {"content-type" => "application/problem+json"}, ['{"title": "Not Found"}']]
      end
    end
  end

  def items(env)
    packed = env["HTTP_ACCEPT"] == "application/vnd.msgpack"
    type = packed ? "application/vnd.msgpack" : "application/json"
    [200, {"content-type" => type, "etag" => packed ? '"m"' : '"j"', "vary" => "Accept", "set-cookie" => "a=b"}, [packed ? MessagePack.pack(ITEMS) : JSON.generate(ITEMS)]]
  end

  def get(path = nil, method: "GET", **env)
    app = Rack::Lint.new(explorer)
    query = path ? {"QUERY_STRING" => "path=#{Rack::Utils.escape(path)}"} : {}
    Rack::MockRequest.new(app).request(method, "/hikyaku/representations", {**LOCAL, **query, **env.transform_keys(&:to_s)})
  end

  def explorer(**options) = Explorer.new(application, environment: "development", **options)

  def text(html) = CGI.unescapeHTML(html.gsub(/<[^>]*>/, " "))

  test "a response is shown as JSON and as MessagePack, with status, type, tag and sizes" do
    answer = get("/items?page=2")
    assert_equal [200, "text/html; charset=utf-8", "no-store"], [answer.status, answer["content-type"], answer["cache-control"]]
    assert_equal [["application/json", "/items", "page=2"], ["application/vnd.msgpack", "/items", "page=2"]], @asked.map { |env| env.values_at("HTTP_ACCEPT", "PATH_INFO", "QUERY_STRING") }
    shown = text(answer.body)
    assert_equal 2, shown.scan('"name": "Item 19"').size
    ['ETag "j"', 'ETag "m"', "Status 200", "Content-Type application/vnd.msgpack", "Vary Accept"].each { |each| assert_includes shown.squeeze(" "), each }
    json, packed = JSON.generate(ITEMS), MessagePack.pack(ITEMS)
    [json, packed].each do |bytes|
      [bytes, Zlib.gzip(bytes)].each { |sized| assert_includes shown, "#{number(sized.bytesize)} (#{(100.0 * sized.bytesize / json.bytesize).round} %)" }
    end
    assert_match(/Bytes +plain +gzip +br +zstd/, shown)
    refute_includes answer.headers, "set-cookie"
  end

  test "where there is one representation alone, the other's sizes are shown all the same" do
    shown = text(get("/json").body).squeeze(" ")
    assert_includes shown, "JSON 8 (100 %)"
    assert_includes shown, "MessagePack asked for, JSON given 8 (100 %)"
    assert_includes shown, "MessagePack, if it were offered 4 (50 %)"
  end

  test "everything is escaped, and nothing may run" do
    ["/items", "/html", "/raises", "/\"><script>alert(1)</script>", "/broken"].each do |path|
      answer = get(path)
      refute_match(/<script|<b>|\e|onerror=/, answer.body)
      policy = answer["content-security-policy"]
      assert policy.start_with?("default-src 'none'; "), policy
      refute_match(/script-src|unsafe/, policy)
      assert_includes policy, "frame-ancestors 'none'"
      assert_includes policy, "'sha256-#{Digest::SHA256.base64digest(answer.body[%r{<style>(.*)</style>}m, 1])}'"
      assert_equal "nosniff", answer["x-content-type-options"]
    end
    refute_match(/ style=| on\w+=/, get("/items").body)
  end

  test "what the application is asked has nothing of the request for the page but who asks" do
    get("/items", HTTP_COOKIE: "session=1", HTTP_AUTHORIZATION: "Basic x", HTTP_IF_NONE_MATCH: '"j"', HTTP_RANGE: "bytes=0-1", HTTP_ACCEPT_ENCODING: "gzip",
      HTTP_ORIGIN: "http://localhost:3000", HTTP_REFERER: "http://localhost:3000/hikyaku/representations", HTTP_SEC_FETCH_SITE: "same-origin", HTTP_ACCEPT_LANGUAGE: "ja", "rack.request.query_hash": {"path" => "x"}, "action_dispatch.request.path_parameters": {"a" => 1})
    @asked.each do |env|
      assert_equal ["GET", "session=1", "Basic x", "ja", "/items", false], env.values_at("REQUEST_METHOD", "HTTP_COOKIE", "HTTP_AUTHORIZATION", "HTTP_ACCEPT_LANGUAGE", "REQUEST_URI", "hikyaku.compression")
      assert_equal "", env["rack.input"].read
      %w[HTTP_IF_NONE_MATCH HTTP_RANGE HTTP_ACCEPT_ENCODING HTTP_ORIGIN HTTP_REFERER HTTP_SEC_FETCH_SITE rack.request.query_hash action_dispatch.request.path_parameters].each { |name| refute_includes env, name }
    end
  end

  test "bodies are closed, and read to a limit" do
    body = Struct.new(:closed) do
      def each = loop { yield "[0]" * 100 }

      def close = self.closed = true
    end.new
    page = Explorer.new(->(_) { [200, {"content-type" => "application/json"}, body] }, environment: "test", max_bytes: 1000)
    html = Rack::MockRequest.new(page).get("/hikyaku/representations?path=/x", LOCAL).body
    assert body.closed
    assert_includes html, "the body is longer than 1000 bytes"
    assert_operator get("/long").body.bytesize, :<, 2_000_000
  end

  test "what has no end, no body, or is broken is said" do
    assert_includes get("/events").body, "This is a stream of events"
    assert_includes get("/writes").body, "writes this body to the connection itself"
    assert_includes text(get("/raises").body), "The application raised RuntimeError: no <b>moon</b>\\u001b[31m\\u202e\\xff"
    assert_includes text(get("/html").body), "25 bytes of text/html; x=<script>, which is not shown here"
    assert_includes text(get("/broken").body), "[1 … broken at byte 2: expected entry 2 of 2"
    assert_includes text(get("/empty").body).squeeze(" "), "Status 204"
    assert_includes text(get("/nowhere").body).squeeze(" "), "Status 404"
  end

  test "it is for browsers on this machine that come by a name of this machine, and from nowhere else" do
    [{REMOTE_ADDR: "192.0.2.1"}, {REMOTE_ADDR: ""}, {REMOTE_ADDR: "127.0.0.1.example.com"}, {HTTP_HOST: "evil.example"}, {HTTP_HOST: "localhost.evil.example"}, {HTTP_HOST: "evillocalhost"}, {HTTP_HOST: "127.0.0.1.evil.example"},
      {HTTP_X_FORWARDED_FOR: "127.0.0.1"}, {HTTP_X_FORWARDED_HOST: "localhost"}, {HTTP_X_REAL_IP: "127.0.0.1"}, {SERVER_PROTOCOL: "HTTP/1.0"}, {HTTP_FORWARDED: "for=127.0.0.1"}, {HTTP_VIA: "1.1 x"}, {HTTP_SEC_FETCH_SITE: "cross-site"}, {HTTP_SEC_FETCH_SITE: "same-site"}].each do |env|
      answer = get("/items", **env)
      assert_equal [403, "application/problem+json"], [answer.status, answer["content-type"]], env.inspect
      assert_equal 403, JSON.parse(answer.body)["status"]
      assert_empty @asked
    end
    [{REMOTE_ADDR: "::1"}, {REMOTE_ADDR: "::ffff:127.0.0.1"}, {HTTP_HOST: "[::1]:9292"}, {HTTP_HOST: "127.0.0.1"}, {HTTP_HOST: "app.localhost:3000"}, {HTTP_SEC_FETCH_SITE: "same-origin"}, {HTTP_SEC_FETCH_SITE: "none"}]
      .each { |env| assert_equal 200, get("/items", **env).status, env.inspect }
  end

  test "it refuses to be in production" do
    %w[production staging].each do |environment|
      error = assert_raises(Explorer::Misplaced) { explorer(environment: environment) }
      assert_match(/this is #{environment}/, error.message)
      assert_kind_of Hikyaku::Error, error
    end
  end

  test "where nobody says that this is development it refuses to be, and RACK_ENV, which servers set by themselves, only says that it is not" do
    [{}, {"RACK_ENV" => "development"}, {"RAILS_ENV" => "production"}, {"RAILS_ENV" => "development", "RACK_ENV" => "production"}, {"APP_ENV" => "staging", "RAILS_ENV" => "development"}].each do |said|
      in_environment(said) { assert_raises(Explorer::Misplaced, said.inspect) { Explorer.new(application) } }
    end
    error = in_environment({}) { assert_raises(Explorer::Misplaced) { Explorer.new(application) } }
    assert_match(/nobody says .* set RAILS_ENV or APP_ENV to development/, error.message)
    [{"RAILS_ENV" => "development"}, {"APP_ENV" => "test", "RACK_ENV" => "test"}].each { |said| in_environment(said) { assert Explorer.new(application) } }
    in_environment("RACK_ENV" => "production") { assert explorer }
  end

  test "only GET and HEAD are understood" do
    answer = get("/items", method: "POST")
    assert_equal [405, "GET, HEAD"], [answer.status, answer["allow"]]
    assert_empty @asked
    head = get("/items", method: "HEAD")
    assert_equal [200, "", get("/items")["content-length"]], [head.status, head.body, head["content-length"]]
  end

  test "paths that lead elsewhere are refused, and what one types is escaped as a browser would" do
    ["items", "//evil.example/", "http://evil.example/", "/a#b", "/a\r\nb: c\\d", "/#{"x" * 2000}", "\\x"].each do |path|
      assert_equal 400, get(path).status, path
      assert_empty @asked
    end
    get("/日本 x?q=<é>&r=%20")
    assert_equal ["/%E6%97%A5%E6%9C%AC%20x", "q=%3C%C3%A9%3E&r=%20"], @asked.first.values_at("PATH_INFO", "QUERY_STRING")
    assert_equal 200, get("/items", QUERY_STRING: "path=%ff%").status
    assert_equal 200, get.status
  end

  test "everything else is the application's, and the page does not show itself" do
    assert_equal 404, Rack::MockRequest.new(explorer).get("/hikyaku/representations/more", LOCAL).status
    assert_equal 2, text(get("/hikyaku/representations?path=/items").body).squeeze(" ").scan("Status 404").size
  end

  test "mounted, it is asked whatever the path is, and asks from the root" do
    whole = nil
    page = explorer(at: nil)
    outer = ->(env) { env["PATH_INFO"].start_with?("/tools") ? page.call(env.merge("SCRIPT_NAME" => "/tools", "PATH_INFO" => env["PATH_INFO"].delete_prefix("/tools"))) : application.call(env) }
    page.instance_variable_set(:@app, ->(env) { (whole = outer).call(env) })
    answer = Rack::MockRequest.new(outer).get("/tools?path=/items", LOCAL)
    assert whole
    assert_equal ["", "/items"], @asked.first.values_at("SCRIPT_NAME", "PATH_INFO")
    assert_includes answer.body, "Item 19"
    assert_includes Rack::MockRequest.new(outer).get("/tools?path=/tools", LOCAL).body, "508"
  end

  private

  def in_environment(said)
    names = %w[RAILS_ENV APP_ENV RACK_ENV]
    before = ENV.to_h.slice(*names)
    names.each { |name| ENV[name] = said[name] }
    yield
  ensure
    names.each { |name| ENV[name] = before[name] }
  end

  def number(count) = count.to_s.gsub(/\B(?=(?:\d{3})+\z)/, ",")
end
