# frozen_string_literal: true

require "test_helper"
require "set"
require "timeout"
require "hikyaku/http/client"
require "support/misbehaving"
require "support/small_scheduler"

# A program that was busy with something else finds what has come meanwhile, however late it is.
class HTTPClientDriverTest < Minitest::Test
  Client = Hikyaku::HTTP::Client
  private_constant :Client

  def setup
    @skew = 0
    @driver = Client::Driver.new(clock: -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) + @skew })
    settings = Client::Settings.new(proxy: nil, max_connections: 1)
    @manager = Client::Dispatcher.new(settings, @driver, Client::Memory.new(nil), clock: -> { Process.clock_gettime(Process::CLOCK_REALTIME) })
  end

  def teardown = @driver.synchronize { @manager.close }

  test "what came before a deadline is given after it" do
    Misbehaving.run(:well_behaved) do |server|
      fetch(server.url("/a")).value
      late = fetch(server.url("/b"), total: 5)
      await("/b")
      @skew = 1_000
      assert_equal Misbehaving.body_of("/b"), late.value.body
    end
  end

  test "what is begun together is asked for when all of it is begun" do
    Misbehaving.run(:well_behaved) do |server|
      client = Client.new(memory: nil, cache: false, proxy: nil, attended: true)
      client.get([server.url("/a"), server.url("/b"), server.url("/c")])
      fetches = client.together do
        begun = Array.new(4) { |i| client.fetch(server.url("/#{i}")).tap { sleep(0.03) } }
        assert_equal 3, server.log.size
        client.together { begun << client.fetch(server.url("/4")) }
      end
      await_all(server, 8)
      assert_equal Array.new(5) { |i| Misbehaving.body_of("/#{i}") }, fetches.map { |fetch| fetch.value.body }
    ensure
      client.close
    end
  end

  test "what did not come before a deadline is not" do
    Misbehaving.run(:slow_first_byte, n: 2, seconds: 60) do |server|
      fetch(server.url("/a")).value
      late = fetch(server.url("/b"), total: 5)
      @skew = 1_000
      assert_raises(Hikyaku::HTTP::TimedOut) { late.value }
    end
  end

  test "a pause of the program is no fault of the server, whatever the program does after it" do
    {"waits" => ->(fetches, _) { fetches.each(&:value) }, "asks for more" => ->(fetches, server) { [*fetches, fetch(server.url("/more"))].each(&:value) }}.each do |what, go_on|
      setup
      Misbehaving.run(:well_behaved) do |server|
        pipe(server)
        before = score
        fetches = fetch_all(Array.new(3) { |i| server.url("/late-#{i}") })
        await("/late-2")
        @skew = 1_000
        go_on.call(fetches, server)
        assert_operator score, :>=, before - 0.1, what
        assert_equal server.log.uniq { |entry| entry[2] }.size, server.log.size, "#{what}: nothing is asked twice"
        assert_equal 1, server.connections, what
      end
      teardown
    end
  end

  test "under a fiber scheduler a fiber that waits for an answer keeps no other from going on" do
    gate = Queue.new
    way = Misbehaving::AsTold.new do |_, _|
      Timeout.timeout(60) { gate.pop } && nil
    rescue Timeout::Error
      "HTTP/1.1 503 Nobody came\r\nContent-Length: 0\r\n\r\n"
    end
    Misbehaving.run(way) do |server|
      client = Client.new(memory: nil, cache: false, proxy: nil)
      statuses = []
      SmallScheduler.run do
        2.times { |i| Fiber.schedule { statuses << client.get(server.url("/#{i}")).status } }
        Fiber.schedule { client.open(server.url("/stream")) { |stream| statuses << [stream.status, stream.read.bytesize] } }
        Fiber.schedule { 3.times { gate << true } }
      end
      assert_equal [200, 200, [200, Misbehaving.body_of("/stream").bytesize]].to_set, statuses.to_set
    end
  end

  test "what is idle for too long is closed, whoever is asked next, and not looked for at every turn" do
    Misbehaving.run(:well_behaved) do |server|
      Misbehaving.run(:well_behaved) do |other|
        fetch(server.url("/a")).value
        idle = @manager.servers.to_a.first
        looked = 0
        idle.define_singleton_method(:clear) { |now| super(now).tap { looked += 1 } }
        [0, 28, 29].each_with_index do |later, before|
          @skew = later
          5.times { |i| fetch(other.url("/#{later}-#{i}")).value }
          assert_equal 1, idle.connections.size, later.to_s
          assert_operator looked, :>=, before
        end
        assert_operator looked, :<, 15
        @skew = 35
        fetch(other.url("/last")).value
        assert_empty idle.connections
        assert_equal 1, other.connections
      end
    end
  end

  test "everything is tended once a turn" do
    Misbehaving.run(:well_behaved) do |server|
      fetch(server.url("/a")).value
      turns = tended = 0
      manager = @manager.servers.to_a.first
      manager.define_singleton_method(:step) { |*about| super(*about).tap { turns += 1 } }
      manager.define_singleton_method(:tend) { |*about| super(*about).tap { tended += 1 } }
      fetch_all(Array.new(5) { |i| server.url("/#{i}") }).each(&:value)
      assert_equal turns, tended
      assert_operator turns, :>=, 2
    end
  end

  private

  def fetch(url, total: nil) = fetch_all([url], total: total).first

  def fetch_all(urls, total: nil)
    @driver.synchronize do
      fetches = urls.map do |url|
        fetch = Client::Fetch.new(url, @manager, @driver, Client::RequestOptions.new(total: total))
        fetch.tap { @manager.submit(Hikyaku::HTTP::Request.new("GET", url), fetch) }
      end
      fetches.tap { @driver.nudge }
    end
  end

  def pipe(server)
    fetch(server.url("/first")).value
    fetch_all(%w[/one /two].map { |path| server.url(path) }).each(&:value)
    assert_equal :pipe, verdict.state(Time.now.to_f)
  end

  def verdict = @manager.servers.to_a.first.verdict

  def score = verdict.record.fetch("score")

  # Until the answer is here to be read.
  # Nobody waits for the fetches: they go on all the same.
  def await_all(server, count)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
    sleep(0.005) until server.log.size == count || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    assert_equal count, server.log.size
  end

  def await(path)
    socket = @manager.servers.to_a.first.connections.first.reading.first
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
    until socket.recv_nonblock(1_000_000, Socket::MSG_PEEK, exception: false).to_s.include?(Misbehaving.body_of(path))
      flunk "no answer" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep(0.002)
    end
  end
end
