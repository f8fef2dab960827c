# frozen_string_literal: true

require "test_helper"
require "hikyaku/hub"
require "hikyaku/server/middleware"
require "hikyaku/web/problem"
require "hikyaku/web"

class HealthEndpointsTest < Minitest::Test
  HUB_URL = "https://hub.example.com/.well-known/mercure"
  Hub = Hikyaku::Hub

  def ask(path, method: "GET", **options)
    app = ->(_env) { [418, {}, ["the application"]] }
    Hikyaku::Server::HealthEndpoints.new(app, **options).call({"PATH_INFO" => path, "REQUEST_METHOD" => method})
  end

  test "it says whether the process lives and whether the hub takes work" do
    assert_equal [200, ["ok\n"]], ask("/healthz").values_at(0, 2)
    assert_equal [200, ["ready\n"]], ask("/readyz").values_at(0, 2)
    assert_equal [503, ["stopping\n"]], ask("/readyz", ready: -> { false }).values_at(0, 2)
    assert_equal [200, []], ask("/healthz", method: "HEAD").values_at(0, 2)
    assert_equal 405, ask("/healthz", method: "POST").first
  end

  test "it says what is understood here at all" do
    assert_equal [204, {"allow" => "GET, HEAD, POST, QUERY, DELETE, OPTIONS"}, []], ask("*", method: "OPTIONS")
  end

  test "everything else is the application's, the metrics too unless they are asked for" do
    %w[/ /healthz/ /metrics /readyzz].each { |path| assert_equal 418, ask(path).first, path }
  end

  # The exposition format: https://prometheus.io/docs/instrumenting/exposition_formats/
  test "the metrics are the hub's figures, in lines that Prometheus reads" do
    hub = Hub.new(hub_url: HUB_URL, heartbeat: nil, max_connections: 1)
    hub.subscribe(Hub::Grant.new(matchers: [hub.matcher("exact", "/a")]), address: "192.0.2.1")
    assert_raises(Hikyaku::TooManyConnections) { hub.subscribe(Hub::Grant.new(matchers: [hub.matcher("exact", "/a")])) }
    3.times { hub.publish(Hub::Update.new(topics: "/a", data: "x")) }
    refusals = Hikyaku::Web::Refusals.new
    refusals.add(Hikyaku::Web::Problem.new(401, "no", code: "invalid_token"))
    refusals.add(Hikyaku::Web::Problem.new(413, "no"))
    status, headers, body = ask("/metrics", metrics: Hikyaku::Server::Metrics.new(hub, refusals: refusals))
    assert_equal [200, "text/plain; version=0.0.4; charset=utf-8"], [status, headers["content-type"]]
    samples = read(body.join)
    expected = {
      "hikyaku_subscribers" => 1, "hikyaku_feeds" => 1, "hikyaku_publishes_total" => 3, "hikyaku_deliveries_total" => 0,
      "hikyaku_log_updates" => 3, %(hikyaku_lag_updates{quantile="1"}) => 3, %(hikyaku_evictions_total{outcome="told"}) => 0,
      %(hikyaku_refusals_total{reason="invalid_token"}) => 1, %(hikyaku_refusals_total{reason="too_large"}) => 1,
      %(hikyaku_refusals_total{reason="too_many_in_total"}) => 1
    }
    assert_equal expected, samples.slice(*expected.keys)
    assert_operator samples["hikyaku_log_bytes"], :>, 0
  end

  # Only #stats, as NativeReactor#stats has it.
  Reactor = Struct.new(:stats)

  test "of the engine in C they also show what became of connections and requests, and how long the loop worked" do
    stats = {
      connections: 3, streams: 2, accepted: 9, requests: 8, bytes_in: 700, bytes_out: 800, refused_connections: 1, refused_asks: 2,
      malformed: 3, timed_out_heads: 4, timed_out_writes: 5, timed_out_idle: 6, turns: 10, turn_ns: 1_500_000_000, longest_turn_ns: 2_500,
      grant_hits: 11, grant_misses: 12, asks: 13, decisions: 14, decision_bytes: 15
    }
    refusals = Hikyaku::Web::Refusals.new
    refusals.add(Hikyaku::Web::Problem.new(400, "no"))
    hub = Hub.new(hub_url: HUB_URL, heartbeat: nil)
    samples = read(Hikyaku::Server::Metrics.new(hub, refusals: refusals, reactor: Reactor.new(stats)).to_s)
    expected = {
      "connections" => 3, "connections_accepted_total" => 9, "requests_total" => 8, "received_bytes_total" => 700, "sent_bytes_total" => 800,
      "grant_hits_total" => 11, "grant_misses_total" => 12, "asks_total" => 13, "grants" => 14, "grant_bytes" => 15,
      "loop_turns_total" => 10, "loop_turn_seconds_total" => 1.5, "loop_longest_turn_seconds" => 0.0000025,
      %(refusals_total{reason="malformed"}) => 4, %(refusals_total{reason="too_many_connections"}) => 1,
      %(refusals_total{reason="overloaded"}) => 2, %(refusals_total{reason="slow_request"}) => 4,
      %(timeouts_total{awaited="write"}) => 5, %(timeouts_total{awaited="idle"}) => 6
    }.transform_keys { |name| "hikyaku_#{name}" }
    assert_equal expected, samples.slice(*expected.keys)
  end

  test "a refusal for want of room is counted once, under the limit that was reached" do
    hub = Hub.new(hub_url: HUB_URL, heartbeat: nil, max_connections: 1)
    hub.subscribe(Hub::Grant.new(matchers: [hub.matcher("exact", "/a")]))
    assert_raises(Hikyaku::TooManyConnections) { hub.subscribe(Hub::Grant.new(matchers: [hub.matcher("exact", "/a")])) }
    refusals = Hikyaku::Web::Refusals.new.tap { |all| all.add(Hikyaku::Web::Problem.new(429, "no")) }
    samples = read(Hikyaku::Server::Metrics.new(hub, refusals: refusals).to_s)
    assert_equal 1, samples.sum { |name, value| name.include?("refusals_total") ? value : 0 }
  end

  # Every line is a comment or a sample, and each metric is described once, before its samples.
  def read(text)
    assert text.end_with?("\n")
    described = []
    text.lines(chomp: true).each_with_object({}) do |line, samples|
      case line
      when /\A# HELP (\S+) ./ then assert_nil described.index($1), line
      when /\A# TYPE (\S+) (gauge|counter)\z/ then described << $1
      when /\A([a-z_]+)(\{[a-z_]+="[^"\\]*"\})? (-?[\d.e+-]+)\z/
        assert_equal described.last, $1, line
        samples["#{$1}#{$2}"] = $3.to_f
      else flunk "not a line of the format: #{line}"
      end
    end
  end
end
