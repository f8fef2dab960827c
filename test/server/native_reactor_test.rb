# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "contracts/driver_contract"
require "hikyaku/server/native_reactor"

class NativeReactorTest < Minitest::Test
  include DriverContract

  def engine = Hikyaku::Hub::NativeEngine

  def new_reactor(hub, **options) = Hikyaku::Server::NativeReactor.new(hub, **options)

  def reactor_thread = Thread.list.find { |thread| thread.name == "hikyaku-reactor" && thread == @reactor.instance_variable_get(:@thread) }

  # Ends without running what the parent has registered, and says how by its status.
  def in_child
    pid = fork do
      exit!(yield ? 0 : 1)
    rescue Exception => error # rubocop:disable Lint/RescueException
      warn "#{error.class}: #{error.message}\n#{error.backtrace.first(5).join("\n")}"
      exit!(2)
    end
    assert_equal 0, Timeout.timeout(60) { Process.wait2(pid) }.last.exitstatus
  rescue Timeout::Error
    Process.kill(:KILL, pid)
    Process.wait(pid)
    flunk "the child hangs"
  end

  def ruby(script)
    Timeout.timeout(60) { Open3.capture2e(RbConfig.ruby, *$LOAD_PATH.map { |path| "-I#{path}" }, "-rhikyaku/server/native_reactor", "-rhikyaku/hub", "-rsocket", "-e", script) }
  end

  PRELUDE = <<~RUBY
    hub = Hikyaku::Hub.new(hub_url: "https://hub.example.com/.well-known/mercure", engine: Hikyaku::Hub::NativeEngine, heartbeat: 1)
    reactor = Hikyaku::Server::NativeReactor.new(hub)
    grant = Hikyaku::Hub::Grant.new(matchers: [hub.matcher("exact", "/a")])
    readers = Array.new(50) { UNIXSocket.pair.then { |ours, theirs| reactor.attach(hub.subscribe(grant), ours); theirs } }
    readers.each { |reader| reader.readpartial(100) }
  RUBY

  # What containers do: io_uring_setup (425 on every architecture) fails with EPERM.
  FORBID_IO_URING = <<~RUBY
    require "fiddle"
    filter = [[0x20, 0, 0, 0], [0x15, 0, 1, 425], [0x06, 0, 0, 0x00050001], [0x06, 0, 0, 0x7fff0000]].map { |line| line.pack("SCCL") }.join
    program = [filter.bytesize / 8, Fiddle::Pointer[filter].to_i].pack("Sx6Q")
    prctl = Fiddle::Function.new(Fiddle.dlopen(nil)["prctl"], [Fiddle::TYPE_INT, Fiddle::TYPE_LONG, Fiddle::TYPE_VOIDP, Fiddle::TYPE_LONG, Fiddle::TYPE_LONG], Fiddle::TYPE_INT)
    abort "no seccomp" unless prctl.call(38, 1, nil, 0, 0).zero? && prctl.call(22, 2, Fiddle::Pointer[program], 0, 0).zero?
  RUBY

  test "where io_uring is forbidden deliveries are sent one by one, and the log says so" do
    out, status = ruby(<<~RUBY)
      #{FORBID_IO_URING}
      require "logger"
      #{PRELUDE.sub("NativeReactor.new(hub)", "NativeReactor.new(hub, logger: Logger.new($stdout))")}
      hub.publish(Hikyaku::Hub::Update.new(topics: ["/a"], data: "hello"))
      reactor.wake
      puts readers.count { |reader| reader.wait_readable(60) && reader.readpartial(1_000).include?("hello") }
    RUBY

    assert status.success?, out
    assert_match(/io_uring is not available \(Operation not permitted\): each delivery is a send\(\) of its own/, out)
    assert_equal "50", out.lines.last.chomp
  end

  # Closing the descriptor is what makes the kernel refuse.
  test "where io_uring ends in the middle deliveries are sent one by one, and the log says so" do
    out, status = ruby(<<~RUBY)
      require "logger"
      #{PRELUDE.sub("NativeReactor.new(hub)", "NativeReactor.new(hub, logger: Logger.new($stdout))")}
      ring = Dir["/proc/self/fd/*"].find { |entry| File.symlink?(entry) && File.readlink(entry).include?("io_uring") }
      IO.for_fd(File.basename(ring).to_i).close if ring
      hub.publish(Hikyaku::Hub::Update.new(topics: ["/a"], data: "hello"))
      reactor.wake
      came = readers.count { |reader| reader.wait_readable(60) && reader.readpartial(1_000).include?("hello") }
      sleep 0.05 until !ring || reactor.stats[:ring_error] > 0
      reactor.send(:report)
      puts came, ring ? "used" : "none"
    RUBY

    assert status.success?, out
    assert_equal "50", out.lines[-2].chomp
    skip "no io_uring on this machine" if out.lines.last.chomp == "none"
    assert_match(/WARN.*io_uring has ended \(Bad file descriptor\): each delivery is a send\(\) of its own from now on/, out)
  end

  test "only the native engine can be driven" do
    hub = Hikyaku::Hub.new(hub_url: DriverContract::HUB_URL, engine: Hikyaku::Hub::RubyEngine)
    assert_match(/native engine, not for Hikyaku::Hub::RubyEngine/, assert_raises(Hikyaku::NativeUnavailable) { Hikyaku::Server::NativeReactor.new(hub) }.message)
  end

  test "the connection object is closed at once, its socket lives on" do
    ours, theirs = UNIXSocket.pair
    @open << theirs
    @reactor.attach(@hub.subscribe(Hikyaku::Hub::Grant.new(matchers: [@hub.matcher("exact", "/a")])), ours)
    assert ours.closed?
    read_until(theirs, ":")
    publish("/a", "hello")
    read_until(theirs, "hello")
  end

  test "the socket changes hands as it is, and nobody who forgets the object closes it" do
    ours, theirs = UNIXSocket.pair
    @open << theirs
    number = ours.fileno
    socket = File.readlink("/proc/self/fd/#{number}")
    @reactor.attach(@hub.subscribe(Hikyaku::Hub::Grant.new(matchers: [@hub.matcher("exact", "/a")])), ours)
    read_until(theirs, ":")
    ours = nil # rubocop:disable Lint/UselessAssignment
    GC.start
    assert_equal [number.to_s], Dir.children("/proc/self/fd").select { |fd| File.readlink("/proc/self/fd/#{fd}") == socket rescue false } # standard:disable Style/RescueModifier
    publish("/a", "hello")
    read_until(theirs, "hello")
  end

  test "a connection that is closed already, or comes too late, is no subscriber's" do
    ours, = UNIXSocket.pair
    ours.close
    @reactor.attach(@hub.subscribe(Hikyaku::Hub::Grant.new(matchers: [@hub.matcher("exact", "/a")])), ours)
    assert_equal 0, subscribers
    subscriber = @hub.subscribe(Hikyaku::Hub::Grant.new(matchers: [@hub.matcher("exact", "/a")]))
    @hub.unsubscribe(subscriber)
    ours, theirs = UNIXSocket.pair
    @reactor.attach(subscriber, ours)
    assert_match(/\Aretry: \d+\n\n\z/, Timeout.timeout(60) { theirs.read })
  end

  test "the loop's thread survives what others raise in it" do
    reader = subscribe("/a")
    read_until(reader, ":")
    3.times do |i|
      reactor_thread.raise("round #{i}")
      publish("/a", "after #{i}")
      read_until(reader, "after #{i}")
      wait_until { @reactor.running? }
    end
  end

  test "when the loop's thread was killed, the next connection starts another, and nothing is lost" do
    reader = subscribe("/a")
    read_until(reader, ":")
    reactor_thread.tap(&:kill).join
    refute @reactor.running?
    publish("/a", "meanwhile")
    late = subscribe("/a")
    read_until(reader, "meanwhile")
    read_until(late, ":")
    assert @reactor.running?
  end

  test "a stop closes everybody, also when the loop's thread was killed before" do
    reader = subscribe("/a")
    read_until(reader, ":")
    reactor_thread.tap(&:kill).join
    @hub.shutdown
    assert_match(/\Aretry: \d+\n\n\z/, Timeout.timeout(60) { reader.read })
    refute @reactor.running?
  end

  test "after a stop it starts again for whoever comes" do
    read_until(subscribe("/a"), ":")
    @reactor.stop
    refute @reactor.running?
    reader = subscribe("/a")
    read_until(reader, ":")
    publish("/a", "again")
    read_until(reader, "again")
    @reactor.stop
    @reactor.stop
  end

  test "descriptors are given back" do
    before = Dir["/proc/self/fd/*"].size
    3.times do
      readers = Array.new(20) { subscribe("/a") }
      readers.each { |reader| read_until(reader, ":") }
      @reactor.stop
      readers.each { |reader| Timeout.timeout(60) { reader.read } && reader.close }
      @open.each { |socket| socket.close unless socket.closed? }
    end
    assert_equal before, Dir["/proc/self/fd/*"].size
    assert_equal 0, subscribers
  end

  test "who publishes and subscribes from many threads while streams come and go loses nothing" do
    steady = 5.times.map { subscribe("/steady") }
    steady.each { |reader| read_until(reader, ":") }
    publishers = 4.times.map { |t| Thread.new { 200.times { |i| publish((i % 2 == 0) ? "/steady" : "/other", "#{t}.#{i}") && (Thread.pass if i % 10 == 0) } } }
    guests = 3.times.map do
      Thread.new do
        40.times do |i|
          reader = subscribe("/other", "/steady", last_event_id: (i % 2 == 0) ? "earliest" : nil)
          reader.readpartial(10)
          reader.close
        end
      end
    end
    lookers = Thread.new { 100.times { @hub.subscriptions && @hub.stats && @hub.disconnect(subject: "nobody") && Thread.pass } }
    received = steady.map { |reader| Thread.new { collect(reader, 400) } }.map(&:value)
    [*publishers, *guests, lookers].each(&:join)
    assert_equal [400], received.map { |data| data.uniq.size }.uniq
    assert_equal 1, received.uniq.size
    wait_until { subscribers == 5 }
  end

  test "threads that are killed or raised at in the middle leave the hub as it should be" do
    reader = subscribe("/a")
    collector = Thread.new { (+"").tap { |received| received << reader.readpartial(65_536) until received.end_with?("data: the end\n\n") } }
    8.times do |round|
      threads = 4.times.map { Thread.new { 10_000.times { |i| publish("/a", "#{round} #{i}") && @hub.stats } } }
      threads.each { |thread| thread.report_on_exception = false }
      sleep 0.001
      threads.each_with_index { |thread, i| i.even? ? thread.kill : thread.raise("enough") }
      threads.each { |thread| thread.join rescue nil } # rubocop:disable Style/RescueModifier
    end
    count = @hub.stats[:publishes]
    publish("/a", "the end")
    received = Timeout.timeout(60) { collector.value }
    assert_equal count + 1, received.scan(/^data: /).size
  end

  test "a forked child has the history, and none of its parent's subscribers" do
    reader = subscribe("/a")
    read_until(reader, ":")
    id = publish("/a", "before")
    in_child do
      next false unless @hub.stats[:subscribers] == 0 && @hub.last_event_id == id && !@reactor.running?
      late = subscribe("/a", last_event_id: "earliest")
      read_until(late, "before")
      publish("/a", "in the child")
      read_until(late, "in the child")
      @hub.shutdown
      @reactor = nil
      GC.start
      true
    end
    publish("/a", "in the parent")
    refute_includes read_until(reader, "in the parent"), "child"
  end

  test "forks in the middle of everything leave both sides whole" do
    readers = 200.times.map { subscribe("/a") }
    readers.each { |reader| read_until(reader, ":") }
    busy = 2.times.map { |t| Thread.new { (publish("/a", t.to_s) && Thread.pass) until @over } } # rubocop:disable Style/RedundantParentheses
    drain = Thread.new { readers.each { |reader| reader.read_nonblock(65_536, exception: false) } until @over }
    8.times do
      in_child do
        20.times { publish("/a", "child") }
        fresh = subscribe("/a", "/b")
        read_until(fresh, ":")
        publish("/b", "mine")
        read_until(fresh, "mine")
        subscribers == 1
      end
    end
    @over = true
    [*busy, drain].each(&:join)
    publish("/a", "the end")
    assert_equal 200, subscribers
  end

  test "a process ends quietly, whatever its loop is doing" do
    endings = {
      "nothing" => "", "streams" => PRELUDE, "busy" => "#{PRELUDE} Thread.new { loop { hub.publish(Hikyaku::Hub::Update.new(topics: '/a', data: 'x' * 1000)) } }; sleep 0.05",
      "requests" => "#{PRELUDE} reactor.stop; reactor.instance_variable_set(:@thread, nil)
        reactor.take_requests(path: '/'); server = TCPServer.new('127.0.0.1', 0); reactor.listen(server)
        client = TCPSocket.new('127.0.0.1', server.addr[1]); client.write(\"GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n\")
        $kept = reactor.next_request; Thread.new { reactor.next_request }; sleep 0.05",
      "waiting" => "#{PRELUDE} Thread.new { reactor.next_request }; reactor.every(0.001) { hub.stats }; sleep 0.05",
      "stopped" => "#{PRELUDE} hub.shutdown", "forked" => "#{PRELUDE} Process.wait(fork { hub.stats; reactor.wake })"
    }
    endings.each do |name, script|
      output, status = ruby(script)
      assert_equal ["", 0], [output, status.exitstatus], name
    end
  end

  test "figures are told while it runs" do
    read_until(subscribe("/a"), ":")
    wait_until { @reactor.stats[:streams] == 1 }
    stats = @reactor.stats
    assert_operator stats[:turns], :>, 0
    assert_equal 1, stats[:connections]
    assert_equal 0, stats[:grant_hits]
    @reactor.stop
    assert_nil @reactor.stats[:connections]
  end
end

class NativeReactorWithoutIoUringTest < Minitest::Test
  include DriverContract

  def engine = Hikyaku::Hub::NativeEngine

  def new_reactor(hub, **options) = Hikyaku::Server::NativeReactor.new(hub, io_uring: false, **options)

  def reactor_thread = Thread.list.find { |thread| thread.name == "hikyaku-reactor" && thread == @reactor.instance_variable_get(:@thread) }
end
