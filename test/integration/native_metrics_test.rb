# frozen_string_literal: true

require "support/native_test"

# /metrics of the server of the engine in C: what it shows, under load, and that it is true.
class Integration::NativeMetricsTest < Integration::NativeTest
  BOOK = Integration::BOOK
  FIGURES = {
    "connections" => "gauge", "subscribers" => "gauge", "subscriptions" => "gauge", "feeds" => "gauge", "log_bytes" => "gauge",
    "log_updates" => "gauge", "lag_updates" => "gauge", "grants" => "gauge", "grant_bytes" => "gauge", "loop_longest_turn_seconds" => "gauge",
    "publishes_total" => "counter", "deliveries_total" => "counter", "delivered_bytes_total" => "counter", "received_bytes_total" => "counter",
    "sent_bytes_total" => "counter", "requests_total" => "counter", "connections_accepted_total" => "counter", "evictions_total" => "counter",
    "refusals_total" => "counter", "timeouts_total" => "counter", "grant_hits_total" => "counter", "grant_misses_total" => "counter",
    "asks_total" => "counter", "loop_turns_total" => "counter", "loop_turn_seconds_total" => "counter"
  }.freeze

  test "while it is busy, every scrape is text that Prometheus reads, with all figures, and no counter falls" do
    hub = start_native
    streams = Array.new(3) { follow(hub, BOOK) }
    load = Thread.new { publish_on_one_connection(hub, 2_000) }
    scrapes = []
    scrapes << read(hub.get("/metrics")) while load.alive? || scrapes.size < 2
    load.value
    streams.each { |stream| stream.take(2_000) }
    scrapes << read(hub.get("/metrics"))
    scrapes.each { |scrape| assert_equal FIGURES, scrape.types.slice(*FIGURES.keys) }
    scrapes.each_cons(2) { |earlier, later| assert_no_counter_falls(earlier, later) }
    last = scrapes.last.samples
    assert_equal [3.0, 3.0, 1.0, 2_000.0, 6_000.0], last.values_at("subscribers", "subscriptions", "feeds", "publishes_total", "deliveries_total")
    assert_operator last["delivered_bytes_total"], :>, 6_000 * 20
    assert_operator last["sent_bytes_total"], :>, last["delivered_bytes_total"]
    assert_operator last["received_bytes_total"], :>, 2_000 * 100
    assert_equal [1_999.0 + 2, 2.0, 0.0], last.values_at("grant_hits_total", "grant_misses_total", %(lag_updates{quantile="1"}))
    assert_operator last["loop_turns_total"], :>, 100
    assert_operator last["loop_turn_seconds_total"], :>, 0
    assert_operator last["log_bytes"], :>, 2_000 * 20
  end

  test "hits rise when the same values come again, misses when others come, asks whenever Ruby answers" do
    hub = start_native
    moved = figures(hub)
    other = token(:publisher, "*", sub: "other")
    assert_equal [0, 1, 1], moved.call { hub.publish(BOOK, "first") }
    assert_equal [5, 0, 0], moved.call { 5.times { hub.publish(BOOK, "again") } }
    assert_equal [0, 1, 1], moved.call { hub.publish(BOOK, "other", token: other) }
    assert_equal [1, 0, 0], moved.call { hub.publish(BOOK, "other", token: other) }
    assert_equal [0, 1, 1], moved.call { follow(hub, BOOK) }
    assert_equal [3, 0, 0], moved.call { 3.times { follow(hub, BOOK, headers: {"last-event-id" => "earliest"}) } }
    assert_equal [0, 1, 1], moved.call { follow(hub, "#{BOOK}/2") }
    hits, _misses, asks = moved.call { 3.times { hub.get("/healthz") } }
    assert_equal [0, 3], [hits, asks], "what is not the hub's is neither"
    assert_equal [0, 1], moved.call { hub.post("data=no+topic") }.values_at(0, 2), "a refusal is no hit"
    assert_equal 4, hub.metrics["grants"]
    assert_operator hub.metrics["grant_bytes"], :>, 4 * 50
  end

  test "readers that the history has passed are counted by what became of them, and the lag of the slowest is told" do
    hub = start_native("--history", "256K", "--slow-reader", "close=#{BOOK}/close", "--slow-reader", "gap=*")
    readers = %w[gap close].map { |name| socket(hub).tap { |socket| socket.write(subscription_to("#{BOOK}/#{name}")) } }
    eventually("both") { hub.metrics["subscribers"] == 2 }
    lags = Array.new(300) do |number|
      %w[gap close].each { |name| hub.publish("#{BOOK}/#{name}", "x" * 20_000) }
      (number % 20).zero? ? hub.metrics.values_at(%(lag_updates{quantile="1"}), %(lag_updates{quantile="0.99"})) : [0, 0]
    end
    assert_operator lags.map(&:first).max, :>, 0
    assert lags.all? { |slowest, most| slowest >= most }
    drain(readers)
    eventually("both outcomes") { hub.metrics.values_at(%(evictions_total{outcome="told"}), %(evictions_total{outcome="closed"})).all? { |count| count >= 1 } }
  end

  test "a hub with subscribers and nothing to tell them rests: its loop does not turn" do
    hub = start_native("--heartbeat", "0")
    Array.new(20) { follow(hub, BOOK) }
    before, cpu = hub.metrics["loop_turns_total"], hub.cpu
    sleep 1
    assert_operator hub.metrics["loop_turns_total"] - before, :<, 20
    assert_operator hub.cpu - cpu, :<, 0.3
  end

  test "what is refused before it is a request counts too, and by its reason" do
    hub = start_native
    before = refusals(hub)
    ["GET / HTTP/1.1\r\n\r\n", "GET / HTTP/9.9\r\nHost: a\r\n\r\n"].each { |bytes| socket(hub).tap { |asking| asking.write(bytes) }.read }
    hub.post("topic=a", token: nil)
    hub.post("topic=a", token: "x.y.z")
    hub.post("topic=a", token: token(:publisher, "b"))
    hub.post("data=x")
    hub.post("topic=a&data=#{"x" * 1_100_000}")
    hub.get("/nothing")
    hub.client.request("PUT", PATH)
    rose = refusals(hub).to_h { |reason, count| [reason, count - before.fetch(reason, 0)] }.reject { |_, count| count.zero? }
    assert_equal({"malformed" => 3, "no_token" => 1, "invalid_token" => 1, "insufficient_scope" => 1, "too_large" => 1, "not_found" => 1, "method_not_allowed" => 1}, rose)
  end

  private

  Scrape = Struct.new(:types, :samples)
  private_constant :Scrape

  # https://prometheus.io/docs/instrumenting/exposition_formats/
  def read(response)
    assert_equal [200, "text/plain; version=0.0.4; charset=utf-8"], [response.status, response["content-type"]]
    assert response.body.end_with?("\n")
    response.body.lines(chomp: true).each_with_object(Scrape.new({}, {})) do |line, scrape|
      case line
      when /\A# HELP (\S+) .+/ then refute scrape.types.key?($1.delete_prefix("hikyaku_")), line
      when /\A# TYPE (\S+) (gauge|counter)\z/ then scrape.types[$1.delete_prefix("hikyaku_")] = $2
      when /\A([a-z_]+)((?:\{[a-z_]+="[^"\\]*"\})?) (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\z/
        name, labels, value = $1.delete_prefix("hikyaku_"), $2, $3
        assert_equal scrape.types.keys.last, name, line
        assert_nil scrape.samples["#{name}#{labels}"], line
        scrape.samples["#{name}#{labels}"] = value.to_f
      else flunk "not a line of the format: #{line}"
      end
    end
  end

  def assert_no_counter_falls(earlier, later)
    earlier.samples.each do |name, value|
      next unless earlier.types[name[/\A\w+/]] == "counter"
      assert_operator later.samples.fetch(name), :>=, value, name
    end
  end

  def publish_on_one_connection(hub, count)
    connection = hub.client.connect
    count.times.each_slice(50) do |numbers|
      connection.write(numbers.map { |number| publication("topic=#{BOOK}&data=#{number}", token: hub.publisher) }.join)
      numbers.each { raise "not published" unless answer(connection).status == 200 }
    end
  ensure
    connection&.close
  end

  # @return [Proc] by how much hits, misses and asks rise during a block; to look asks once, and is no part of it
  def figures(hub)
    now = -> { hub.metrics.values_at("grant_hits_total", "grant_misses_total", "asks_total") }
    lambda do |&block|
      before = now.call
      block.call
      now.call.zip(before, [0, 0, 1]).map { |after, then_, own| (after - then_ - own).to_i }
    end
  end

  def refusals(hub) = hub.metrics.filter_map { |name, count| [name[/reason="(\w+)"/, 1], count.to_i] if name.start_with?("refusals_total") }.to_h

  # Reads what has come, until nothing more does.
  def drain(sockets)
    sockets.each do |socket|
      while socket.wait_readable(0.3)
        break unless socket.read_nonblock(65_536, exception: false).is_a?(String)
      end
    rescue SystemCallError
      nil
    end
  end
end
