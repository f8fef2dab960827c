# frozen_string_literal: true

require "test_helper"
require "support/examination"
require "tempfile"

# What stands between clients and the hub before there is a stream: names, certificates, paths, headers.
class DoctorWaysTest < Minitest::Test
  include Examination

  NGINX = {"server" => "nginx/1.22.1"}.freeze

  def raw(status, fields = {}, body = "") = "HTTP/1.1 #{status} Status\r\n#{{"content-length" => body.bytesize, "connection" => "close"}.merge(fields).map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n#{body}"

  def answering(answers, url = HOME, **defects) = proxy(url, answers: answers, **defects)

  test "reach: what is no hub is said to be none, and nothing else is checked" do
    {
      raw(200, {"content-type" => "text/html"}, "<p>Welcome") => /a text\/html is there, not a hub/,
      raw(404, {"server" => "nginx"}) => /behind nginx: there is nothing at this path/,
      raw(502) => /502: what stands in front does not reach the hub/,
      raw(403) => /403: no hub answers so/,
      raw(429) => /too many connections/
    }.each do |answer, message|
      assert_says :fail, message, examine(answering({/./ => answer}), keys: [])
      assert_equal "no hub answers at this URL", @doctor.stopped
    end
    assert_says :fail, /no HTTP/, examine(answering({/./ => "SSH-2.0-OpenSSH\r\n\r\n"}), keys: [])
    assert_says :fail, /closed without an answer/, examine(answering({/./ => ""}), keys: [])
  end

  test "reach: what stands in front is recognised by its headers, or told" do
    {
      NGINX => %w[nginx], {"server" => "openresty"} => %w[nginx], {"server" => "Caddy"} => %w[Caddy], {"via" => "1.1 Caddy"} => %w[Caddy],
      {"server" => "Apache/2.4.57 (Debian)"} => %w[Apache], {"server" => "cloudflare"} => %w[Cloudflare], {"cf-ray" => "8a-FRA", "server" => "nginx"} => %w[Cloudflare nginx],
      {"x-cache" => "miss"} => %w[Thruster], {"x-cache" => "MISS"} => [], {"server" => "gunicorn"} => []
    }.each do |fields, names|
      assert_equal names, check("reach", proxy(fields: fields)).first.measured[:front], fields.inspect
    end
    assert_equal %w[kamal-proxy nginx], check("reach", proxy(fields: NGINX), behind: %w[Kamal-Proxy]).first.measured[:front]
    assert_match(%r{behind nginx/1\.22\.1}, check("reach", proxy(fields: NGINX)).first.message)
  end

  test "reach: redirects are followed, said, and not to what is not encrypted" do
    moved = answering({%r{\AGET /old } => raw(308, {"location" => "/.well-known/mercure"})})
    findings = examine(moved, "http://localhost/old", only: %w[reach])
    assert_among :warn, %r{http://localhost/old redirects to http://localhost/\.well-known/mercure \(308\)}, findings
    assert_among :ok, /answers in/, findings
    assert_equal HOME, @doctor.url
    assert_says :fail, /one time too many/, check("reach", answering({/./ => raw(302, {"location" => "/again"})})).last(1)
    assert_equal "it redirects elsewhere", @doctor.stopped
    assert_says :fail, /what is no URL/, check("reach", answering({/./ => raw(302, {"location" => "mailto:me"})}))
    down = secure(answers: {/./ => raw(302, {"location" => "http://hub.test/"})})
    assert_says :fail, /that is not encrypted/, check("reach", down, SECURE, ca_file: trusted)
  end

  test "reach: tokens stay with the host that they were meant for" do
    elsewhere = answering({%r{\AGET /old } => raw(307, {"location" => "http://127.0.0.1:#{hub("http://127.0.0.1").port}/.well-known/mercure"})})
    findings = examine(elsewhere, "http://localhost/old", only: %w[publisher])
    assert_says :skip, /nobody can publish/, findings
    assert_among :warn, /keys and tokens stay behind: give that URL/, check("reach", elsewhere, "http://localhost/old")
  end

  test "certificate: a good one is said to be good" do
    assert_says :ok, /of hub\.test, valid for \d+ minutes more, TLSv1\.\d/, check("certificate", secure, SECURE, ca_file: trusted)
    assert_empty check("certificate", hub)
  end

  test "certificate: nothing goes on with one that clients refuse" do
    findings = examine(secure, SECURE)
    assert_says :fail, /not by an authority that is trusted here: it is signed by itself/, findings
    assert_equal "clients refuse the certificate", @doctor.stopped
    assert_says :fail, /it is for other\.test, not for hub\.test/, examine(secure("other.test"), SECURE, ca_file: trusted)
    assert_says :fail, /it has expired 59 minutes ago/, examine(secure(from: -7200, to: -3599), SECURE, ca_file: trusted)
    assert_says :fail, /not valid before/, examine(secure(from: 3600, to: 7200), SECURE, ca_file: trusted)
  end

  test "certificate: one whose renewal is overdue is said while there is time" do
    found = assert_says :warn, /last fifth of its life/, check("certificate", secure(from: -90_000, to: 5_000), SECURE, ca_file: trusted)
    assert_match(/renew it/, found.advice.first)
  end

  test "http2: over TLS by what is offered, and plain HTTP by where it is" do
    assert_says :ok, /HTTP\/2 is offered/, check("http2", secure(alpn: %w[h2 http/1.1]), SECURE, ca_file: trusted)
    found = assert_says :warn, /not offered, and over HTTP\/1\.1 a browser has six connections/, check("http2", secure(fields: NGINX), SECURE, ca_file: trusted)
    assert(found.advice.any? { |line| line.include?("listen 443 ssl http2") })
    assert_says :warn, /this is plain HTTP/, check("http2", hub(AWAY), AWAY, keys: [])
    assert_says :ok, /on this machine/, check("http2", hub)
  end

  test "plain: http is sent to https, or is not there, or is wrong" do
    {
      raw(308, {"location" => SECURE}) => [:ok, /sends clients to https \(308\)/],
      raw(301, {"location" => SECURE}) => [:ok, /\(301\), after which many repeat a POST as a GET/],
      raw(302, {"location" => AWAY}) => [:fail, /does not send clients to https: it answers 302/],
      raw(401) => [:fail, /answers 401/]
    }.each do |answer, (level, message)|
      plain = answering({/./ => answer})
      assert_says level, message, check("plain", secure, SECURE, ca_file: trusted, http_port: plain.port)
    end
    assert_says :ok, /answers no plain HTTP/, check("plain", secure, SECURE, ca_file: trusted, http_port: FreePort.pick)
    assert_says :warn, /travel readable/, check("plain", hub(AWAY), AWAY, keys: [])
    assert_empty check("plain", hub)
  end

  test "plain: of a URL with another port nobody knows where plain HTTP would be" do
    url = "https://hub.test:8443/.well-known/mercure"
    assert_says :skip, /--http-port/, check("plain", secure, url, keys: [], ca_file: trusted)
  end

  test "clock: a difference is measured, and told by how much it harms" do
    assert_says :ok, /they agree/, check("clock", proxy)
    assert_says :fail, /clock is \d+ minutes ahead of/, check("clock", proxy(skew: 300))
    assert_says :fail, /clock is \d+ minutes behind/, check("clock", proxy(skew: -300))
    assert_equal(-1, check("clock", proxy(skew: -300)).first.measured[:skew] <=> 0)
    assert_says :warn, /clock is \d+ seconds ahead/, check("clock", proxy(skew: 30))
    assert_says :warn, /no Date/, check("clock", proxy(lost: %w[date]))
  end

  test "clock: tokens that were made elsewhere are judged by the server's" do
    token = AccessTokens.token(:publisher, "*", aud: HOME, exp: Time.now.to_i + 60)
    assert_among :fail, /by the server's clock the publisher's token has expired \d+ (minutes|seconds) ago/, check("clock", proxy(skew: 200), keys: [], tokens: [token])
    assert_among :warn, /the subscriber's token was issued \d+ \w+ in the future/, check("clock", proxy(skew: -200), keys: [], tokens: [AccessTokens.token(:subscriber, "*", aud: HOME)])
  end

  test "metadata: at the path that follows from the URL, and about it" do
    assert_says :ok, %r{at /\.well-known/oauth-protected-resource/\.well-known/mercure}, check("metadata", hub)
    found = assert_says :warn, /404 is answered/, check("metadata", answering({%r{GET /\.well-known/oauth} => raw(404)}, fields: NGINX))
    assert(found.advice.any? { |line| line.include?("location = /.well-known/oauth-protected-resource") })
    assert_says :warn, /a text\/html is there/, check("metadata", answering({%r{GET /\.well-known/oauth} => raw(200, {"content-type" => "text/html"}, "<p>")}))
    assert_says :warn, /names no resource/, check("metadata", answering({%r{GET /\.well-known/oauth} => raw(200, {"content-type" => "application/json"}, "{}")}))
    assert_says :warn, /calls itself #{HOME}, not http:\/\/127/o, check("metadata", hub, "http://127.0.0.1/.well-known/mercure")
    assert_says :fail, /calls itself #{HOME}, not #{AWAY}/o, check("metadata", hub, AWAY, keys: [])
  end

  test "discovery: the Link of a page" do
    link = ->(value) { answering({%r{\AGET /books } => raw(200, {"link" => value})}) }
    page = "http://localhost/books"
    assert_says :ok, /leads to the hub/, check("discovery", link.call(%(</style.css>; rel=preload, <#{HOME}>; rel="mercure"; last-event-id="#1")), page: page)
    assert_says :ok, /leads to the hub/, check("discovery", link.call("</.well-known/mercure>; rel=mercure"), page: page)
    assert_says :fail, /no Link with rel="mercure"/, check("discovery", link.call("</style.css>; rel=preload"), page: page)
    assert_says :fail, /leads to http:\/\/127\.0\.0\.1:3030\/hub, not to/, check("discovery", link.call(%(<http://127.0.0.1:3030/hub>; rel="mercure")), page: page)
    assert_says :fail, /answers 404/, check("discovery", hub, page: page)
    assert_says :skip, /--page/, check("discovery", hub)
  end

  test "paths: what does not get to the hub is named" do
    found = assert_says :warn, %r{GET …/subscriptions, POST …/streams and DELETE …/subscribers is answered}, check("paths", answering({%r{\A\w+ /\.well-known/mercure/} => raw(404, {"content-type" => "text/html"})}, fields: NGINX))
    assert(found.advice.any? { |line| line.include?("in place of location =") })
    assert_says :warn, /DELETE …\/subscribers/, check("paths", answering({/\ADELETE/ => raw(405)}))
    assert_says :warn, /HEAD/, check("paths", answering({/\AHEAD/ => raw(405)}))
    assert_says :warn, /QUERY.* is answered 501/, check("paths", answering({/\AQUERY/ => raw(501)}))
    assert_says :skip, /does not refuse as Hikyaku does/, check("paths", answering({%r{\AGET /\.well-known/mercure } => raw(400, {"content-type" => "text/plain"}, "Missing topic")}))
  end

  test "exposure: developer mode and figures are for oneself" do
    developing = hub(AWAY, dev: true, publisher_key: :absent, subscriber_key: :absent, issuer: :absent)
    findings = check("exposure", developing, AWAY, keys: [])
    assert_among :fail, /developer page is there/, findings
    assert_among :fail, /secret of development images/, findings
    assert_says :ok, /on this machine only: the developer page/, check("exposure", hub(HOME, dev: true), keys: [])
    assert_says :warn, /\/metrics/, check("exposure", hub(AWAY, metrics: true), AWAY, keys: [])
    assert_says :ok, /neither/, check("exposure", hub(AWAY), AWAY, keys: [])
  end

  test "authorization: what does not get to the hub, or back, is found without a key" do
    found = assert_says :fail, /does not get to the hub, which saw no token/, check("authorization", proxy(without: %w[authorization], fields: NGINX), keys: [])
    assert(found.advice.any? { |line| line.include?("proxy_set_header Authorization") })
    assert_says :warn, /without WWW-Authenticate/, check("authorization", proxy(lost: %w[www-authenticate]), keys: [])
    findings = check("authorization", proxy(without: %w[authorization], lost: %w[www-authenticate]), keys: [])
    assert_equal %i[fail warn], findings.map(&:level)
    assert_says :fail, /asks for a password \(Basic\)/, check("authorization", answering({/\APOST/ => raw(401, {"www-authenticate" => "Basic realm=\"staging\""})}), keys: [])
    assert_says :fail, /POST does not get to the hub: 405/, check("authorization", answering({/\APOST/ => raw(405)}), keys: [])
    assert_says :fail, /answers 200, not 401/, check("authorization", answering({/\APOST/ => raw(200)}), keys: [])
    assert_says :warn, /the challenge leads to #{Regexp.escape(HOME[/.*localhost/])}/, check("authorization", hub, "http://127.0.0.1/.well-known/mercure", keys: [])
    assert_says :ok, /challenge comes back/, check("authorization", hub, keys: [])
  end

  test "length: a token as long as the hub takes must get there" do
    assert_says :ok, /a token of 16 KB gets to the hub/, check("length", hub, keys: [])
    assert_says :warn, /more than 0 bytes is refused on the way \(431\)/, check("length", answering({/\APOST/ => raw(431)}), keys: [])
    assert_says :warn, /refused on the way \(the connection was closed\)/, check("length", answering({/\APOST/ => ""}), keys: [])
  end

  test "cookie: it must get to the hub, and over plain HTTP no browser sends it" do
    assert_says :ok, /__Secure-mercure_access_token gets to the hub/, check("cookie", hub)
    assert_says :ok, /mine gets/, check("cookie", hub(HOME, cookie_name: "mine"))
    assert_says :fail, /does not get to the hub/, check("cookie", proxy(without: %w[cookie]))
    assert_says :ok, /gets to the hub/, check("cookie", proxy(lost: %w[www-authenticate]))
    findings = check("cookie", hub(AWAY), AWAY, keys: [])
    assert_among :warn, /over plain HTTP no browser keeps or sends __Secure-/, findings
    assert_says :ok, /mine/, check("cookie", hub(AWAY, cookie_name: "mine"), AWAY, keys: [])
    assert_says :skip, /metadata does not say/, check("cookie", answering({%r{GET /\.well-known/oauth} => raw(404)}))
  end

  test "cors: pages of an origin, preflights, and fields that are there twice" do
    app = "https://app.example.com"
    friendly = hub(HOME, cors_origins: [app])
    assert_says :ok, /pages of #{app} may read, with their cookie/, check("cors", friendly, origin: app)
    assert_says :ok, /own origin/, check("cors", hub, origin: "http://localhost")
    found = assert_says :fail, /preflight of #{app} is answered without/, check("cors", hub, origin: app)
    assert_equal ["hikyaku serve: --cors-origin ORIGIN", "rails: config.hikyaku.cors_origins = [\"ORIGIN\"]"], found.advice.drop(1)
    assert_says :fail, /without/, check("cors", friendly, origin: "https://evil.example.com")
    assert_says :warn, /without their cookie .*\*/, check("cors", hub(HOME, cors_origins: ["*"]), origin: app)
    assert_says :fail, /2 fields access-control-allow-origin/, check("cors", proxy(hubs: [friendly], fields: {"access-control-allow-origin" => app}), origin: app)
    assert_says :fail, /is answered for https:\/\/b/, check("cors", proxy(fields: {"access-control-allow-origin" => "https://b.example"}), origin: app)
    assert_says :warn, /may not read mercure-last-event-id/, check("cors", proxy(hubs: [friendly], lost: %w[access-control-expose-headers]), origin: app)
    assert_says :warn, /Vary/, check("cors", proxy(hubs: [friendly], lost: %w[vary]), origin: app)
    assert_says :warn, /does not allow the headers authorization and last-event-id/, check("cors", proxy(hubs: [friendly], lost: %w[access-control-allow-headers]), origin: app)
    assert_says :warn, /no Access-Control-Allow-Credentials/, check("cors", proxy(hubs: [friendly], lost: %w[access-control-allow-credentials]), origin: app)
    assert_says :fail, /a preflight is answered 403/, check("cors", proxy(hubs: [friendly], answers: {/\AOPTIONS/ => raw(403, {"access-control-allow-origin" => app, "access-control-allow-credentials" => "true"})}), origin: app)
    assert_says :skip, /--origin/, check("cors", friendly)
  end

  private

  # A proxy that ends TLS.
  def secure(name = "hub.test", from: -60, to: 3600, **options)
    certificate, key = ScriptedServer.certificate(name)
    certificate.not_before = Time.now + from
    certificate.not_after = Time.now + to
    certificate.sign(key, "SHA256")
    @trusted = certificate.to_pem
    proxy(SECURE, tls: [certificate, key], **options)
  end

  # @return [String] path of the certificate of the latest such proxy
  def trusted
    file = Tempfile.new("certificate")
    file.write(@trusted.to_s)
    file.close
    (@files ||= []) << file
    file.path
  end
end
