# frozen_string_literal: true

require "socket"
require "timeout"
require "hikyaku/hub"

# What everything must do that carries a hub's bytes. Including tests define `engine`, a class, and
# `new_reactor(hub, write_timeout:)`.
module DriverContract
  HUB_URL = "https://hub.example.com/.well-known/mercure"

  def setup
    super
    begin_reactor
    @open = []
  end

  def teardown
    @hub.shutdown
    @open.each { |socket| socket.close unless socket.closed? }
    super
  end

  # A reader may be late where the machine is busy.
  def begin_reactor(write_timeout: 60)
    @hub&.shutdown
    @hub = new_hub
    @reactor = new_reactor(@hub, write_timeout: write_timeout)
  end

  def new_hub(heartbeat: nil, **options) = Hikyaku::Hub.new(hub_url: HUB_URL, heartbeat: heartbeat, engine: engine, **options)

  def subscribe(*topics, send_buffer: nil, **options)
    ours, theirs = UNIXSocket.pair
    @open.push(ours, theirs)
    matchers = topics.map { |topic| @hub.matcher("exact", topic) }
    subscriber = @hub.subscribe(Hikyaku::Hub::Grant.new(matchers: matchers, **options.slice(:expires_at, :subject)), **options.slice(:last_event_id))
    @reactor.attach(subscriber, ours)
    theirs
  end

  def publish(topic, data) = @hub.publish(Hikyaku::Hub::Update.new(topics: topic, data: data))

  # Reads until the text has come, or fails.
  def read_until(socket, text, seconds: 60)
    received = +""
    Timeout.timeout(seconds) { received << socket.readpartial(65_536) until received.include?(text) }
    received
  rescue Timeout::Error, EOFError
    flunk "#{text.inspect} did not come, only #{received[0, 300].inspect}"
  end

  def wait_until(seconds: 60)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    sleep 0.005 until yield || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    assert yield, "it did not come true"
  end

  def subscribers = @hub.stats[:subscribers]

  def collect(reader, count)
    received = +""
    Timeout.timeout(60) { received << reader.readpartial(65_536) until received.scan("\ndata: ").size >= count }
    received.scan(/^data: (.*)$/).flatten
  end

  def self.included(base)
    base.extend(SentenceTests)
    base.class_eval do
      test "a new stream begins with a comment, so that proxies pass the head on" do
        assert_equal ":\n\n", read_until(subscribe("/a"), "\n\n")
      end

      test "what is published arrives, also what was published before the socket came" do
        reader = subscribe("/a")
        id = publish("/a", "hello")
        assert_includes read_until(reader, "hello"), "id: #{id}\ndata: hello\n\n"
      end

      test "hundreds of readers each get everything, in order" do
        readers = 300.times.map { subscribe("/a") }
        wait_until { @hub.stats[:subscribers] == 300 }
        20.times { |i| publish("/a", "update #{i}") }
        readers.each do |reader|
          received = read_until(reader, "update 19")
          assert_equal (0..19).map { |i| "update #{i}" }, received.scan(/^data: (.*)$/).flatten
        end
      end

      test "a client that goes is forgotten" do
        reader = subscribe("/a")
        read_until(reader, ":")
        reader.close
        wait_until { subscribers.zero? }
      end

      test "a client that talks too much is closed, one that says little is not" do
        quiet, chatty = subscribe("/a"), subscribe("/a")
        [quiet, chatty].each { |reader| read_until(reader, ":") }
        quiet.write("x" * 100)
        begin
          20.times { chatty.write("x" * 8192) && sleep(0.005) }
        rescue Errno::EPIPE, Errno::ECONNRESET
          nil
        end
        wait_until { subscribers == 1 }
        publish("/a", "hello")
        read_until(quiet, "hello")
      end

      test "a slow reader gets everything later and harms nobody" do
        slow, fast = subscribe("/a"), subscribe("/a")
        [slow, fast].each { |reader| read_until(reader, ":") }
        data = "x" * 50_000
        60.times { |i| publish("/a", "#{i} #{data}") && read_until(fast, "\n\n") }
        received = read_until(slow, "data: 59 ")
        assert_equal (0..59).to_a, received.scan(/^data: (\d+) /).flatten.map(&:to_i)
      end

      test "a reader that reads nothing is closed after the write timeout" do
        begin_reactor(write_timeout: 3)
        stalled, reader = subscribe("/a"), subscribe("/a")
        read_until(reader, ":")
        thread = Thread.new { read_until(reader, "the end") }
        60.times { publish("/a", "x" * 50_000) }
        wait_until { subscribers == 1 }
        publish("/a", "the end")
        thread.join
        refute stalled.closed?
      end

      test "a stream ends at the expiry of its grant, with a time to come back" do
        reader = subscribe("/a", expires_at: Process.clock_gettime(Process::CLOCK_REALTIME) + 0.6)
        received = Timeout.timeout(60) { reader.read }
        assert_match(/^retry: \d+\n\n\z/, received)
      end

      test "disconnecting a subject ends its streams and no others" do
        gone, stays = subscribe("/a", subject: "alice"), subscribe("/a", subject: "bob")
        [gone, stays].each { |reader| read_until(reader, ":") }
        assert_equal 1, @hub.disconnect(subject: "alice")
        assert_match(/retry: \d+\n\n\z/, Timeout.timeout(60) { gone.read })
        publish("/a", "hello")
        read_until(stays, "hello")
      end

      test "shutdown sends what is pending, says when to come back, and closes everybody" do
        readers = 50.times.map { subscribe("/a") }
        readers.each { |reader| read_until(reader, ":") }
        publish("/a", "last words")
        @hub.shutdown
        retries = readers.map do |reader|
          received = Timeout.timeout(60) { reader.read }
          assert_includes received, "data: last words\n\n"
          received[/^retry: (\d+)\n\n\z/, 1].to_i
        end
        assert(retries.all? { |milliseconds| milliseconds.between?(500, 30_000) })
        assert_operator retries.uniq.size, :>, 10
        refute @reactor.running?
      end

      test "publishing from many threads loses and repeats nothing" do
        readers = 20.times.map { subscribe("/a") }
        readers.each { |reader| read_until(reader, ":") }
        threads = 8.times.map { |t| Thread.new { 50.times { |i| publish("/a", "#{t}.#{i}") } } }
        collectors = readers.map { |reader| Thread.new { collect(reader, 400) } }
        threads.each(&:join)
        expected = collectors.map(&:value)
        assert(expected.all? { |data| data.size == 400 && data.uniq.size == 400 })
        assert_equal 1, expected.uniq.size, "everybody sees the same order"
      end

      test "a forked child does not touch its parent's streams" do
        reader = subscribe("/a")
        read_until(reader, ":")
        pid = fork do
          ours, theirs = UNIXSocket.pair
          subscriber = @hub.subscribe(Hikyaku::Hub::Grant.new(matchers: [@hub.matcher("exact", "/a")]))
          @reactor.attach(subscriber, ours)
          publish("/a", "in the child")
          received = read_until(theirs, "in the child")
          exit!((received.start_with?(":\n\n") && subscribers == 1) ? 0 : 1)
        rescue Exception # rubocop:disable Lint/RescueException
          exit!(2)
        end
        assert_equal 0, Process.wait2(pid).last.exitstatus
        publish("/a", "in the parent")
        refute_includes read_until(reader, "in the parent"), "in the child"
      end

      test "a repeated job runs as long as the reactor does, on a thread of the hub's" do
        names = Queue.new
        @reactor.every(0.05) { names << Thread.current.name }
        read_until(subscribe("/a"), ":")
        @reactor.every(0.05) { names << "another" }
        assert_match(/\Ahikyaku-/, Timeout.timeout(60) { names.pop })
        Timeout.timeout(60) { nil until names.pop == "another" }
        @hub.shutdown
        names.clear
        sleep 0.1
        assert_empty names
      end
    end
  end
end
