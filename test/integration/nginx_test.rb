# frozen_string_literal: true

require "support/integration"
require "support/browser_sources"
require "support/nginx_proxy"

# The hub behind nginx, with the configuration of docs/guides/nginx.conf.
class NginxTest < Integration::Test
  include AccessTokens
  include BrowserSources

  BOOK = Integration::BOOK
  COOKIE = "__Secure-mercure_access_token"

  def setup
    super
    skip_unless_available("nginx", "openssl", "curl")
  end

  # @param flags [Array<String>] of the hub
  # @return [NginxProxy] in front of a hub that knows its public URL
  def start_both(*flags, &change)
    port = NginxProxy.free_port
    @hub = start_strict_hub("--resource-identifier", "https://hub.test:#{port}/.well-known/mercure", "--trusted-proxy", "127.0.0.1", *flags)
    @nginx = ending(NginxProxy.new("127.0.0.1:#{@hub.port}", port: port, &change))
  end

  def curl(*arguments) = [Availability.path_of("curl"), "-sS", "--max-time", "15", "--cacert", @nginx.certificate, "--resolve", "hub.test:#{@nginx.port}:127.0.0.1", *arguments]

  # @return [Array(Integer, String)] status and what curl printed
  def ask(*arguments, input: "")
    out, status = ClientProcess.run(*curl("-w", "\n%{http_code}", *arguments), input: input)
    assert status.success?, "curl ended with #{status.exitstatus}"
    body, _, code = out.rpartition("\n")
    [code.to_i, body]
  end

  def listen(*arguments)
    client = run_client(*curl("-N", "-D", "/dev/stderr", *arguments))
    client.until(/^:/)
    client
  end

  def bearer(role, *topics, **claims) = ["-H", "Authorization: Bearer #{token(role, *topics, aud: @nginx.url, **claims)}"]

  def publish(topic, data, *more)
    status, id = ask(@nginx.url, *bearer(:publisher, "*"), "--data-urlencode", "topic=#{topic}", "--data-urlencode", "data@-", *more, input: data)
    assert_equal 200, status, id
    id
  end

  test "over HTTP/2 and HTTP/1.1 each event is passed on at once, also a small one and one that is large" do
    start_both
    streams = %w[--http2 --http1.1].map { |version| listen(version, subscription(@nginx, BOOK)) }
    assert_match(%r{^HTTP/2 200}, streams.first.errors)
    assert_match(%r{^HTTP/1.1 200}, streams.last.errors)
    ["x", "y" * 300_000, "z"].each do |data|
      id = publish(BOOK, data)
      # The next is published only when this one is there: a proxy that waits for more would wait for ever.
      streams.each { |stream| stream.until { _1.include?("id: #{id}\ndata: #{data}\n\n") } }
    end
    streams.each { |stream| refute_match(/^(x-accel-buffering|content-encoding)/i, stream.errors) }
  end

  test "heartbeats keep an idle stream open for longer than nginx waits for the hub" do
    start_both("--heartbeat", "1") { |text| text.sub("proxy_read_timeout 75s", "proxy_read_timeout 2s") }
    stream = listen("--http2", subscription(@nginx, BOOK))
    stream.until { _1.scan(/^:/).size >= 5 }
    publish(BOOK, "still there")
    stream.until(/^data: still there/)
  end

  test "without heartbeats the same stream is cut: the test above can fail" do
    start_both("--heartbeat", "0") { |text| text.sub("proxy_read_timeout 75s", "proxy_read_timeout 2s") }
    stream = listen("--http2", subscription(@nginx, BOOK))
    assert_predicate stream.status(8), :exited?
    assert_match(/upstream timed out/, @nginx.error_log)
  end

  test "publishes share a connection to the hub, and the hub's own answers are passed on: challenges, problems, limits" do
    start_both
    3.times { |number| publish(BOOK, number.to_s) }
    status, body = ask("-i", @nginx.url, "-d", "topic=#{BOOK}")
    assert_equal 401, status
    assert_includes body, %(resource_metadata="https://hub.test:#{@nginx.port}/.well-known/oauth-protected-resource/.well-known/mercure")
    status, body = ask("https://hub.test:#{@nginx.port}/.well-known/oauth-protected-resource/.well-known/mercure")
    assert_equal [200, @nginx.url], [status, JSON.parse(body)["resource"]]
    status, body = ask(@nginx.url, *bearer(:publisher, "*"), "-d", "@-", input: "topic=a&data=#{"x" * 1_100_000}")
    assert_equal [413, 413], [status, JSON.parse(body)["status"]], "the hub's 413, not that of nginx"
    status, body = ask("-i", "-X", "PUT", @nginx.url, "-d", "x")
    assert_equal 405, status
    assert_match(/^allow: GET, HEAD, QUERY, POST, OPTIONS/i, body)
    status, = ask("https://hub.test:#{@nginx.port}/")
    assert_equal 404, status
  end

  test "QUERY and HEAD pass, and plain HTTP is sent to TLS" do
    start_both
    stream = listen("--http2", "-X", "QUERY", @nginx.url, "-d", "match=#{BOOK}", "-d", "match_urlpattern=https://example.com/q/:id")
    publish("https://example.com/q/1", "queried")
    stream.until(/^data: queried/)
    status, head = ask("-I", subscription(@nginx, BOOK, last_event_id: "earliest"))
    assert_equal 200, status
    assert_match(/^mercure-last-event-id: earliest\r$/i, head)
    out, = ClientProcess.run(*curl("-o", File::NULL, "-w", "%{http_code} %{redirect_url}", "-X", "POST", "-H", "Host: hub.test",
      "http://127.0.0.1:#{@nginx.plain_port}/.well-known/mercure?match=a"))
    assert_equal "308 https://hub.test:#{@nginx.port}/.well-known/mercure?match=a", out
  end

  test "limits for each address count the client, not nginx, and a client cannot choose its address" do
    start_both("--max-connections-per-address", "2")
    first = Array.new(2) { listen("--interface", "127.0.0.2", subscription(@nginx, BOOK)) }
    status, = ask("--interface", "127.0.0.2", subscription(@nginx, BOOK))
    assert_equal 429, status
    status, = ask("--interface", "127.0.0.2", "-H", "X-Forwarded-For: 203.0.113.7", subscription(@nginx, BOOK))
    assert_equal 429, status, "the client's own word on its address counted"
    other = listen("--interface", "127.0.0.3", subscription(@nginx, BOOK))
    publish(BOOK, "to all three")
    [*first, other].each { |stream| stream.until(/^data: to all three/) }
    first.first.close
    eventually("a free place") do
      again = run_client(*curl("-N", "--interface", "127.0.0.2", subscription(@nginx, BOOK)))
      again.until(/^:/, 0.5)
    rescue ClientProcess::TooLate
      nil
    end
  end

  test "with the cookie of a browser publishing needs the public origin (Security Considerations: CSRF)" do
    start_both
    stream = listen(subscription(@nginx, BOOK))
    cookie = ["-H", "Cookie: #{COOKIE}=#{token(:publisher, "*", aud: @nginx.url)}"]
    assert_equal 400, ask(@nginx.url, *cookie, "-d", "topic=#{BOOK}", "-d", "data=forged").first
    assert_equal 400, ask(@nginx.url, *cookie, "-H", "Origin: https://evil.example", "-d", "topic=#{BOOK}", "-d", "data=forged").first
    assert_equal 400, ask(@nginx.url, *cookie, "-H", "Origin: http://hub.test:#{@nginx.port}", "-d", "topic=#{BOOK}", "-d", "data=forged").first
    assert_equal 200, ask(@nginx.url, *cookie, "-H", "Origin: https://hub.test:#{@nginx.port}", "-d", "topic=#{BOOK}", "-d", "data=ours").first
    stream.until(/^data: ours/)
    refute_includes stream.output, "forged"
  end

  test "a browser: the Secure cookie over HTTP/2, more than six streams, and back by itself when the hub was away" do
    start_both
    page = ending(browser_over_tls.page)
    page.visit("https://hub.test:#{@nginx.port}/")
    page.page.cookies.set(name: COOKIE, value: token(:subscriber, "*", aud: @nginx.url), domain: "hub.test", path: "/.well-known/mercure",
      secure: true, httponly: true, samesite: "Strict")
    sources = Array.new(12) { open_source(page, subscription(@nginx, BOOK), types: ["mercure"]) }
    sources.each(&:until_open)
    assert_equal "h2", page.js("performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')).at(-1).nextHopProtocol")
    before = publish(BOOK, "secret", "-d", "private=on", "-d", "retry=100")
    sources.each { |source| assert_equal [["message", before, "secret"]], source.take(1) }
    @hub.stop("KILL")
    # While the hub is away the page tries, and must not give up.
    page.until("nobody tried again") { @nginx.access_log.lines.count { |line| line.include?("GET") } > 14 }
    sources.each { |source| refute_equal 2, source.state, source.errors.inspect }
    @hub.start
    sources.each { |source| assert_equal "mercure", source.take(2).last.first }
    after = publish(BOOK, "back", "-d", "private=on")
    sources.each { |source| assert_equal ["message", after, "back"], source.take(3).last }
  end

  test "while the hub is away a publisher gets 502, which leaves the outcome open, and an EventSource a stream that says when to come back" do
    start_both
    @hub.stop
    status, body = ask("-i", @nginx.url, "-d", "topic=a")
    assert_equal 502, status
    assert_match(%r{^content-type: application/problem\+json\r$}i, body)
    status, body = ask("-i", "-H", "Accept: text/event-stream", "-H", "Origin: https://app.example.com", subscription(@nginx, BOOK))
    assert_equal 200, status
    assert_match(%r{^content-type: text/event-stream\r$}i, body)
    assert_match(%r{^access-control-allow-origin: https://app.example.com\r$}i, body)
    assert_match(/\r\n\r\nretry: [1-4]000\n\n\z/, body)
  end

  test "the hub may listen on a Unix socket, and the log has no tokens of 0.x" do
    folder = Dir.mktmpdir
    @closing << Remove.new(folder)
    port = NginxProxy.free_port
    flags = ["--resource-identifier", "https://hub.test:#{port}/.well-known/mercure", "--issuer", AccessTokens::ISSUER, "--anonymous", "--legacy",
      "--publisher-key", SECRETS[:publisher], "--subscriber-key", SECRETS[:subscriber], "--max-connections-per-address", "1"]
    hub = run_client(*Integration::HIKYAKU, "serve", "--listen", "unix:#{folder}/hub.sock", *flags)
    eventually("the socket") { File.socket?("#{folder}/hub.sock") }
    @nginx = ending(NginxProxy.new("unix:#{folder}/hub.sock", port: port))
    stream = listen(subscription(@nginx, BOOK, authorization: legacy_token(:subscriber, {"subscribe" => ["*"]})))
    assert_equal 429, ask(subscription(@nginx, BOOK)).first, "clients are counted by what nginx says"
    publish(BOOK, "through the socket", "-d", "private=on")
    stream.until(/^data: through the socket/)
    stream.close
    hub.close
    refute_match(/authorization|eyJ/, @nginx.access_log)
  end

  test "the guide explains every directive of the configuration" do
    guide = File.read(File.expand_path("../../docs/guides/nginx.md", __dir__))
    directives = File.read(File.expand_path("../../docs/guides/nginx.conf", __dir__)).scan(/^ *([a-z_]+) [^;{]*[;{]/).flatten.uniq
    assert_includes directives, "proxy_buffering"
    assert_empty (directives - ["default"]).reject { |directive| guide.match?(/`#{directive}[ `]/) }
  end

  private

  Remove = Struct.new(:folder) do
    def close = FileUtils.rm_rf(folder)
  end

  def browser_over_tls = BrowserSources.browser({"ignore-certificate-errors" => nil})
end
