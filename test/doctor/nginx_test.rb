# frozen_string_literal: true

require "test_helper"
require "support/examination"
require "support/nginx_proxy"

# Behind the real nginx: with the guide's configuration nothing is found, without one of its lines that is.
class DoctorNginxTest < Minitest::Test
  include Examination

  # Nearly all of it is waiting.
  parallelize_me!

  def setup
    super
    skip_unless_available("nginx", "openssl")
  end

  # @param hubs [Array<HubServer>] behind the one address
  # @yieldparam text [String] the configuration, to be changed
  def start(*hubs, &change)
    hubs = [hub(SECURE)] if hubs.empty?
    @nginx = NginxProxy.new(hubs.map { |each| "127.0.0.1:#{each.port}" }.join("; server "), &change)
    ending(@nginx)
  end

  def look(**options)
    examine(@nginx, SECURE, ca_file: @nginx.certificate, http_port: @nginx.plain_port, **options)
  end

  # @param line [String] of the location of the hub
  def without(line) = ->(text) { text.include?(line) ? text.sub(line, yield) : raise("docs/guides/nginx.conf does not say #{line.inspect}") }

  def assert_found(level, check, message, advice, findings)
    found = findings.find { |finding| finding.check == check && finding.level == level }
    assert found, findings.inspect
    assert_match message, found.message
    assert(found.advice.any? { |line| line.include?(advice) }, found.advice.inspect)
    found
  end

  test "with the configuration of the guide nothing is found" do
    start
    findings = look(idle: 4, origin: "https://hub.test")
    assert_empty findings.select { |finding| %i[warn fail].include?(finding.level) }
    assert_equal %w[discovery], findings.select { |finding| finding.level == :skip }.map(&:check)
    assert_equal Hikyaku::Doctor::NAMES.keys, findings.map(&:check).uniq
    assert_equal %w[nginx], findings.find { |finding| finding.check == "reach" }.measured[:front]
  end

  test "with buffering, whatever the hub says" do
    start(hub(SECURE, heartbeat: 0), &without("proxy_buffering    off;") { "proxy_buffering on; proxy_ignore_headers X-Accel-Buffering;" })
    found = assert_found :fail, "buffering", /./, "proxy_buffering off;", look(only: %w[buffering], patience: 0.25)
    refute_nil found.measured[:held_by]
  end

  test "with compression of everything" do
    start(&without("gzip               off;") { "gzip on; gzip_types text/event-stream; gzip_proxied any;" })
    assert_found :warn, "compression", /gzip/, "gzip off;", look(only: %w[compression])
  end

  test "with a time for idle streams that is shorter than the hub's heartbeat" do
    start(hub(SECURE, heartbeat: 15), &without("proxy_read_timeout 75s;") { "proxy_read_timeout 2s;" })
    assert_found :fail, "idle", /closed after \S+ s without a byte/, "proxy_read_timeout 75s;", look(only: %w[idle], idle: 30)
  end

  test "without HTTP/2" do
    start { |text| text.sub(/(listen \S+ ssl) http2;/, '\1;') }
    assert_found :warn, "http2", /not offered/, "listen 443 ssl http2;", look(only: %w[http2])
  end

  test "with only the path itself sent to the hub" do
    start(&without("location /.well-known/mercure {") { "location = /.well-known/mercure {" })
    assert_found :warn, "paths", %r{GET …/subscriptions, POST …/streams and DELETE …/subscribers}, "in place of location =", look(only: %w[paths])
  end

  test "without the location of the metadata" do
    start(&without("location = /.well-known/oauth-protected-resource/.well-known/mercure {") { "location = /elsewhere {" })
    assert_found :warn, "metadata", /404 is answered/, "location = /.well-known/oauth-protected-resource", look(only: %w[metadata])
  end

  test "with header fields that are bounded as nginx has it" do
    start(&without("large_client_header_buffers 4 32k;") { "" })
    found = assert_found :warn, "length", /a token of more than \d+ bytes is refused on the way \(400\)/, "large_client_header_buffers 4 32k;", look(only: %w[length])
    assert_includes 7_913..8_168, found.measured[:bytes]
  end

  test "with headers that it drops" do
    start(&without("proxy_buffering    off;") { "proxy_buffering off; proxy_set_header Last-Event-ID ''; proxy_set_header Cookie ''; proxy_hide_header WWW-Authenticate; proxy_hide_header Cache-Control;" })
    findings = look(only: %w[reconnection cookie authorization headers], patience: 1)
    assert_found :fail, "reconnection", /does not get to the hub/, "no proxy_set_header Last-Event-ID", findings
    assert_found :fail, "cookie", /does not get to the hub/, "no proxy_set_header Cookie", findings
    assert_found :warn, "authorization", /without WWW-Authenticate/, "no proxy_hide_header WWW-Authenticate", findings
    assert_found :warn, "headers", /no Cache-Control/, "proxy_hide_header", findings
  end

  test "with two hubs" do
    start(hub(SECURE), hub(SECURE, history: 1_000_000))
    assert_found :fail, "processes", /several hubs answer, and do not know of each other \(2 answered\)/, "one server in the upstream", look(only: %w[processes], patience: 0.4)
  end
end
