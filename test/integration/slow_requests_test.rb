# frozen_string_literal: true

require "support/integration"
require "support/drippers"

# What clients that send too slowly, or hold connections and send nothing, do to the hub's process: on either engine, they harm nobody else.
class Integration::SlowRequestsTest < Integration::Test
  include AccessTokens
  include Drippers

  parallelize_me!

  PATH = "/.well-known/mercure"
  HALF_BODY = "POST #{PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\ntopic"
  # Seconds after which all are over: the time for a head is 10, between requests 20.
  PATIENCE = 180

  def teardown
    @sockets&.each(&:close)
    super
  end

  %w[c ruby].each do |engine|
    test "with the engine #{engine}, drips do not keep others from their timeouts, and are cut" do
      serve("--engine", engine)
      drippers = drip(5, every: 1)
      slow_head = connect("GET / HTTP/1.1\r\nHos")
      slow_body = connect("POST #{PATH} HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx")
      idle = connect("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").tap { |socket| assert_match(/\AHTTP\/1\.1 200 /, read_answer(socket)) }
      late = [slow_head, slow_body, *drip(1, "POST #{PATH} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n", "x" * 1000).map(&:socket), *drippers.map(&:socket)]
      late.each { |socket| assert_told_late socket }
      assert_ended idle, "an idle connection", PATIENCE
      assert_ended connect, "a silent connection", PATIENCE
    end

    test "with the engine #{engine}, subscribers as many as there may be leave room for publishers" do
      serve("--engine", engine, rlimit_nofile: 160)
      streams = []
      loop do
        stream = HttpClient.new(@port).stream("GET", "#{PATH}?match=#{Integration::BOOK}")
        break assert_equal(429, stream.status) unless stream.status == 200
        streams << ending(stream)
        assert_operator streams.size, :<, 160
      end
      assert_operator streams.size, :>=, 90
      5.times { |number| assert_equal 200, publish(number.to_s).status }
      streams.each { |stream| assert_equal %w[0 1 2 3 4], stream.take(5).map(&:data) }
    end

    test "with the engine #{engine}, connections that ask for nothing make room for those that ask" do
      serve("--engine", engine, rlimit_nofile: 160)
      answered = Array.new(60) { connect("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n") }
      answered.each { |socket| assert_match(/\AHTTP\/1\.1 200 /, read_answer(socket)) }
      full = Array.new(100) { connect }
      told = eventually_told(full)
      assert_match(/\AHTTP\/1\.1 429 Too Many Requests\r\n/, told)
      assert_match(/^retry-after: \d+\r$/i, told)
      sleep 1.1
      10.times { |number| assert_equal 200, publish(number.to_s).status }
      before = cpu
      sleep 1
      assert_operator cpu - before, :<, 0.5, "it spins"
    end

    {"not begun" => "", "not finished" => "GET / HTTP/1.1\r\nHos", "without all of their body" => HALF_BODY}.each do |state, bytes|
      test "with the engine #{engine}, requests that are #{state} after a while make room for others" do
        serve("--engine", engine, rlimit_nofile: 160)
        160.times { connect(bytes) } # more than there is room for
        sleep 1.1
        10.times { |number| assert_equal 200, publish(number.to_s).status }
      end
    end
  end

  private

  def serve(*flags, **options)
    @sockets = []
    @hub = start_strict_hub("--resource-identifier", HUB_URL, *flags, **options)
    @port = @hub.port
  end

  # @return [Float] seconds that its threads have been on a processor
  def cpu = File.read("/proc/#{@hub.pid}/stat")[/\) (.*)/, 1].split.values_at(11, 12).sum(&:to_i) / 100.0

  def publish(data)
    headers = {"authorization" => "Bearer #{token(:publisher, "*")}", "content-type" => "application/x-www-form-urlencoded"}
    HttpClient.new(@port).request("POST", PATH, headers: headers, body: URI.encode_www_form(topic: Integration::BOOK, data: data))
  end

  # @return [String, nil] what one of them was told
  def eventually_told(sockets)
    sockets.reverse_each.lazy.filter_map { |socket| socket.read_nonblock(1_000, exception: false) if socket.wait_readable(1) }.first
  end

  def assert_told_late(socket)
    answer = read_answer(socket, PATIENCE)
    assert_match(/\AHTTP\/1\.1 408 Request Timeout\r\n/, answer)
    assert_includes answer, "application/problem+json"
    assert_ended socket, "one that was told"
  end
end
