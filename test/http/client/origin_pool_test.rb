# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client"
require "minitest/mock"
require "support/misbehaving"

class HTTPClientOriginPoolTest < Minitest::Test
  Client = Hikyaku::HTTP::Client
  LAST = {"Connection" => "close"}.freeze
  PIPED = {"state" => "pipe", "score" => 5.0, "since" => Time.now.to_i, "scored_at" => Time.now.to_i}.freeze
  private_constant :Client, :LAST, :PIPED

  # Keeps what it is told.
  class Listener
    attr_reader :status, :error

    def answered(response) = @status = response.status

    def came(_bytes) = nil

    def unfinished = nil

    def interim(_response) = nil

    def finished(_seconds) = @done = true

    def failed(error) = @error = error

    def restart = true

    def done? = @done || !@error.nil?
  end

  def setup
    @later = 0
    @numbers = 0
  end

  test "what wants a connection to itself, and has none yet, does not keep others from going behind what is under way" do
    gates = {"/alone" => Queue.new, "/held" => Queue.new}
    behind = nil
    way = Misbehaving::AsTold.new do |request, connection|
      gates[request.path]&.pop
      behind = connection.more?(10) if request.path == "/held"
      nil
    end
    Misbehaving.run(way) do |server|
      client = Client.new(memory: nil, cache: false, proxy: nil, max_connections: 2, attended: true)
      piped(client, server)
      fetches = [client.fetch(server.url("/alone"), alone: true), client.fetch(server.url("/held"))]
      await { gates.keys.all? { |path| server.log.any? { |entry| entry[2] == path } } }
      fetches << client.fetch(server.url("/posted"), method: "POST", body: "x", priority: 0)
      fetches.concat(Array.new(3) { |i| client.fetch(server.url("/#{i}"), priority: 5) })
      gates["/held"] << true
      await { !behind.nil? }
      gates["/alone"] << true
      assert_equal [200] * 6, fetches.map { |fetch| fetch.value.status }
      assert behind, "they were not asked for"
    ensure
      gates.each_value { |gate| gate << true }
      client&.close
    end
  end

  test "what wants a connection to itself gets one, however much else is asked for" do
    Misbehaving.run(:slow_first_byte, seconds: 0.002) do |server|
      client = Client.new(memory: nil, cache: false, proxy: nil, max_connections: 1)
      piped(client, server)
      gets = Array.new(60) { |i| client.fetch(server.url("/#{i}"), priority: 5) }
      posted = client.fetch(server.url("/posted"), method: "POST", body: "x", priority: 1)
      more = Array.new(60) { |i| client.fetch(server.url("/more-#{i}"), priority: 5) }
      [*gets, posted, *more].each(&:value)
      order = server.log.map { |entry| entry[2] }
      assert_operator order.index("/posted"), :<, order.index("/more-59")
    end
  end

  test "what cannot be repeated does not wait for connections that were idle for too long" do
    Misbehaving.run(:well_behaved) do |server|
      manager = manager_of(server, pipelining: false, max_connections: 2)
      assert_equal [200, 200], answers(manager, %w[/a /b].map { |path| exchange(server, "GET", path) })
      assert_equal 2, manager.connections.count(&:idle?)
      @later = 5
      assert_equal [200], answers(manager, [exchange(server, "POST", "/posted")])
      assert_equal 3, server.connections
      manager.close
    end
  end

  test "where one more connection was refused, and no other will do, it is tried again in time" do
    Misbehaving.run(:well_behaved) do |server|
      manager = manager_of(server, pipelining: false, max_connections: 2)
      answers(manager, [exchange(server, "GET", "/a")])
      pool = manager.instance_variable_get(:@pool)
      pool.refused(now)
      @later = 4
      manager.enqueue(exchange(server, "POST", "/posted"))
      manager.tend(now)
      assert_in_delta pool.enough_until, manager.deadline
      assert_operator manager.deadline, :<, now + 2
      manager.close
    end
  end

  test "two that were asked at once were heard when the second answer begins" do
    way = Misbehaving::AsTold.new { |request, _| "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab" if request.path == "/two" }
    Misbehaving.run(way) do |server|
      manager = manager_of(server, max_connections: 1)
      answers(manager, [exchange(server, "GET", "/first")])
      two = %w[/one /two].map { |path| exchange(server, "GET", path) }
      answers(manager, two) { two.last.listener.status }
      assert manager.verdict.pipe?(Time.now.to_f)
      refute_predicate two.last.listener, :done?
      manager.close
    end
  end

  test "while two are out to find out, others are opened on a long way, as many as there is use for" do
    {[1, 18] => 1, [4, 18] => 4, [6, 18] => 6, [6, 39] => 6, [6, 12] => 6, [6, 9] => 1}.each do |(worthwhile, images), connections|
      gate = Queue.new
      way = Misbehaving::AsTold.new { |request, _| gate.pop && nil if request.path == "/1" }
      Misbehaving.run(way) do |server|
        manager = manager_of(server)
        manager.link.define_singleton_method(:connections) { worthwhile }
        answers(manager, [exchange(server, "GET", "/first")])
        exchanges = Array.new(images) { |i| exchange(server, "GET", "/#{i}") }
        exchanges.each { |one| manager.enqueue(one) }
        manager.tend(now)
        assert_equal connections, manager.connections.size, [worthwhile, images].inspect
        gate << true
        assert_equal [200] * images, answers(manager, exchanges, enqueue: false)
        manager.close
      ensure
        gate << true
      end
    end
  end

  test "what waits behind others before a slow line is not late, and what is silent while the line is silent is" do
    body = "x" * 6_000
    answer = "HTTP/1.1 200 OK\r\nContent-Length: #{body.size}\r\n\r\n#{body}"
    on_two_connections do |manager, exchanges, sockets|
      first, second = manager.connections
      came = 0
      answer.scan(/.{1,500}/m).each do |piece|
        sockets.first.write(piece)
        came += piece.size
        @later += 1
        go_on(manager) { first.brought == came }
      end
      assert_predicate exchanges.first.listener, :done?
      assert_equal [3, 4], [first, second].map { |connection| connection.unanswered.size }
      @later += 10
      manager.tend(now)
      assert_equal 1, second.unanswered.size
    end
  end

  # Twenty answers of 1,000 bytes, of which one may be under way; another connection brings something in three round trips.
  test "no connection is opened where that which stands brings all before it could bring anything" do
    {1_000_000 => [1.0, 1], 20_001 => [1 / 3.0, 1], 19_999 => [1 / 3.0, 2], 10_000 => [1.0, 1], 6_600 => [1.0, 2]}.each do |rate, (round_trip, connections)|
      gate = Queue.new
      way = Misbehaving::AsTold.new { |request, _| gate.pop && nil if request.path == "/0" }
      Misbehaving.run(way) do |server|
        manager = manager_of(server, memory: remembering(server, {}), max_connections: 2)
        known = {window: 1_000.0, rate: rate, round_trip: round_trip, answer_bytes: 1_000.0, connections: 2, guessed?: false}
        answers(manager, [exchange(server, "GET", "/first")])
        known.each { |name, value| manager.link.define_singleton_method(name) { value } }
        exchanges = Array.new(20) { |i| exchange(server, "GET", "/#{i}") }
        exchanges.each { |one| manager.enqueue(one) }
        manager.tend(now)
        assert_equal connections, manager.connections.size, rate.to_s
        manager.close
      ensure
        gate << true
      end
    end
  end

  test "a slow first answer is the server's work, or the line's, by what the kernel knows of its request" do
    {0.02 => [true, 1], 0.001 => [false, 4]}.each do |delay, (heavy, connections)|
      Misbehaving.run(:well_behaved) do |server|
        manager = manager_of(server)
        manager.link.connected(0.4)
        manager.link.define_singleton_method(:connected) { |_| nil }
        service = manager.instance_variable_get(:@service)
        manager.define_singleton_method(:head) do |connection, response|
          connection.define_singleton_method(:request_delay) { delay }
          connection.unanswered.first.begun_at = connection.unanswered.first.sent_at + 1.0
          super(connection, response)
        end
        answers(manager, [exchange(server, "GET", "/first")])
        assert_equal [heavy, connections, !heavy], [manager.link.heavy?, manager.link.connections, service.slow?(0.4)]
        manager.close
      end
    end
  end

  test "at first a server is asked for as much at once as it sends at once, and for more when two were answered" do
    gates = Array.new(2) { Queue.new }
    way = Misbehaving::AsTold.new { |request, _| gates[request.path.delete("/p").to_i].pop && nil if %w[/p0 /p1].include?(request.path) }
    Misbehaving.run(way) do |server|
      manager = manager_of(server, max_connections: 1)
      answers(manager, [exchange(server, "GET", "/first")])
      exchanges = Array.new(30) { |i| exchange(server, "GET", "/p#{i}") }
      exchanges.each { |one| manager.enqueue(one) }
      manager.tend(now)
      assert_equal 9, manager.connections.first.unanswered.size
      gates.first << true
      answers(manager, exchanges, enqueue: false) { exchanges.first.listener.done? }
      assert_equal 8, manager.connections.first.unanswered.size
      gates.last << true
      assert_equal [200] * 30, answers(manager, exchanges, enqueue: false)
      assert_operator server.log.size, :==, 31
      manager.close
    ensure
      gates.each { |gate| gate << true }
    end
  end

  test "at first more is asked than there is room for by the mean of answers, and then no more than that" do
    asked = nil
    gate = Queue.new
    way = Misbehaving::AsTold.new { |request, _| gate.pop && nil if request.path == "/p0" }
    Misbehaving.run(way) do |server|
      manager = manager_of(server, memory: remembering(server, "link" => {"answer" => 2_000, "rate" => 1_000_000}))
      manager.link.define_singleton_method(:window) { 20_000.0 }
      manager.link.define_singleton_method(:connections) { 1 }
      answers(manager, Array.new(100) { |i| exchange(server, "GET", "/p#{i}") }) { (asked = manager.connections.first.unanswered.size) > 1 }
      assert_equal 40, asked
      manager.enqueue(exchange(server, "GET", "/more"))
      manager.tend(now)
      assert_equal 40, manager.connections.first.unanswered.size
      manager.close
    ensure
      gate << true
    end
  end

  # So many may be under way on a long way, and so many of them a server has read whole while it has answered none.
  {6 => 5, 3 => 2, 2 => 2, 1 => 1}.each do |room, whole|
    test "while more waits the last request is left unfinished, but for a server that would have little to do (#{room})" do
      far(room) do |manager, exchanges, socket|
        assert_equal whole, hear(socket).scan("\r\n\r\n").size
        assert_equal whole < room, unfinished?(manager)
        answering = Thread.new do
          loop { socket.write(ANSWER * hear(socket).scan("\r\n\r\n").size) }
        rescue EOFError
          nil
        end
        socket.write(ANSWER * whole)
        assert_equal [200] * 20, answers(manager, exchanges, enqueue: false)
        manager.close
        answering.join
      end
    end
  end

  test "a request that is unfinished is finished when nothing waits any more" do
    far(6) do |manager, exchanges, socket|
      assert_equal 5, hear(socket).scan("\r\n\r\n").size
      exchanges.drop(6).each(&:cancel!)
      manager.tend(now)
      assert_equal 1, hear(socket).scan("\r\n\r\n").size
    end
  end

  test "the last of so many requests as fill the line is finished at once" do
    far(6, full: 5.2) { |_, _, socket| assert_equal 6, hear(socket).scan("\r\n\r\n").size }
    far(6, full: 3.2) { |_, _, socket| assert_equal 5, hear(socket).scan("\r\n\r\n").size }
  end

  test "of few requests the last is not left unfinished: that would be one more write" do
    UNIXSocket.pair do |near, _|
      {2 => false, 3 => true}.each do |count, unfinished|
        connection = opened(near)
        connection.ask(Array.new(count) { |i| exchange(nil, "GET", "/p#{i}") }, now, round_trip: 0.5, enough: 2)
        assert_equal unfinished, connection.instance_variable_get(:@outgoing).unfinished?
      end
    end
  end

  test "a request that is unfinished is finished when little else is under way" do
    far(6) do |manager, exchanges, socket|
      heard = hear(socket)
      manager.link.define_singleton_method(:window) { 0.0 }
      4.times do |number|
        assert_equal 5, heard.scan("\r\n\r\n").size
        socket.write(ANSWER)
        answers(manager, exchanges, enqueue: false) { exchanges[number].listener.done? }
        manager.tend(now)
      end
      assert_equal 1, hear(socket).scan("\r\n\r\n").size
    end
  end

  test "what has no room yet is asked as soon as it has, though nothing comes meanwhile" do
    far(6, full: 50.0) do |manager, _, _|
      manager.link.define_singleton_method(:window) { 1e6 }
      manager.link.define_singleton_method(:rate) { 100_000.0 }
      manager.connections.first.instance_variable_set(:@brought, 1_000_000)
      manager.link.define_singleton_method(:answer_bytes) { 20_000.0 }
      manager.tend(time = now)
      assert_equal 6 + 4, manager.connections.first.unanswered.size
      assert unfinished?(manager) # more comes very soon, and so does its other half
      assert_operator manager.deadline, :<=, time + 0.011
      manager.tend(time + 0.1)
      assert_equal 6 + 4, manager.connections.first.unanswered.size
      manager.tend(time + 0.3)
      assert_equal 6 + 5, manager.connections.first.unanswered.size
    end
  end

  test "nothing goes behind an answer that nobody takes, and what waits behind it for long is asked elsewhere" do
    far(6) do |manager, exchanges, socket|
      connection = manager.connections.first
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
      answers(manager, exchanges, enqueue: false) { exchanges[0].listener.status }
      assert_predicate connection, :usable?
      connection.pause
      refute_predicate connection, :usable?
      manager.tend(time = now)
      assert_equal 6, connection.unanswered.size
      assert_in_delta time + 1.5, manager.deadline, 0.1
      manager.tend(time + 1.6)
      assert_equal [exchanges[0]], connection.unanswered
      assert_operator manager.connections.size, :>, 1
      connection.resume
      manager.tend(time + 1.6)
      refute_predicate connection, :usable?
    end
  end

  # Bytes that came of an answer, the seconds since it began, and whether it is the only one left on its connection.
  [[300_000, 0, true], [200_000, 0, false], [10, 1.4, false], [10, 2.1, true]].each do |bytes, seconds, only|
    test "what is asked behind an answer without a length is asked elsewhere when it is long or takes long (#{bytes}, #{seconds})" do
      far(6) do |manager, exchanges, socket|
        connection = manager.connections.first
        socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n")
        answers(manager, exchanges, enqueue: false) { connection.pipeline.came_of_response > 5 }
        @later = seconds
        writing = Thread.new { socket.write("#{bytes.to_s(16)}\r\n#{"x" * bytes}\r\n") }
        answers(manager, exchanges, enqueue: false) { connection.pipeline.came_of_response >= bytes || connection.unanswered.size == 1 }
        manager.tend(now)
        assert_equal only, connection.unanswered.size == 1
        assert_equal only, !connection.usable?
      ensure
        writing&.kill
      end
    end
  end

  test "an answer that comes slowly but has a length is waited for" do
    far(6) do |manager, exchanges, socket|
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n")
      answers(manager, exchanges, enqueue: false) { exchanges[0].listener.status }
      connection = manager.connections.first
      5.times do |second|
        @later = second
        socket.write("x")
        came = connection.pipeline.came_of_response
        answers(manager, exchanges, enqueue: false) { connection.pipeline.came_of_response > came }
        assert_equal 6, connection.unanswered.size
      end
    end
  end

  test "what is asked alone says nothing of the size of what is asked by the dozen" do
    Misbehaving.run(:well_behaved) do |server|
      manager = manager_of(server)
      usual = manager.link.answer_bytes
      assert_equal [200], answers(manager, [exchange(server, "GET", "/alone")])
      assert_equal usual, manager.link.answer_bytes
      answers(manager, Array.new(4) { |i| exchange(server, "GET", "/#{i}") })
      refute_equal usual, manager.link.answer_bytes
      manager.close
    end
  end

  test "connections are opened before anything is known to be asked where much was asked before, and not elsewhere" do
    {20 => 4, 4 => 4, 3 => 3, 1 => 1, 0 => 1}.each do |usual, connections|
      Misbehaving.run(:well_behaved) do |server|
        manager = manager_of(server, memory: remembering(server, "demand" => usual))
        manager.link.define_singleton_method(:connections) { 4 }
        manager.enqueue(exchange(server, "GET", "/"))
        manager.tend(now)
        assert_equal connections, manager.connections.size, usual.to_s
        manager.close
      end
    end
  end

  test "an error that closes the connection says nothing of how many answers there are" do
    way = Misbehaving::AsTold.new { |request, _| Misbehaving::Answer.to(request).with(LAST).tap { |answer| answer.status = "503 Busy" } if request.path == "/1" }
    Misbehaving.run(way) do |server|
      client = Client.new(memory: nil, cache: false, proxy: nil, max_connections: 1)
      piped(client, server)
      assert_equal [200, 503, 200, 200], client.get(Array.new(4) { |i| server.url("/#{i}") }).map(&:status)
      assert_equal 2, server.connections
      refute_match(/on a connection/, client.explain(server.url))
    end
  end

  test "a server that said once that it closes is asked for more on a connection when it does not again" do
    closes = true
    way = Misbehaving::AsTold.new { |request, connection| Misbehaving::Answer.to(request).with(LAST) if closes && connection.count == 5 }
    Misbehaving.run(way) do |server|
      client = Client.new(memory: nil, cache: false, proxy: nil, max_connections: 1)
      piped(client, server)
      client.get(Array.new(10) { |i| server.url("/#{i}") })
      assert_match(/answers 5 on a connection/, client.explain(server.url))
      closes = false
      client.get(Array.new(20) { |i| server.url("/more-#{i}") })
      refute_match(/on a connection/, client.explain(server.url))
      before = server.connections
      client.get(Array.new(20) { |i| server.url("/last-#{i}") })
      assert_operator server.connections - before, :<=, 1
    end
  end

  test "a connection that stands long after the answer at which others were closed is used on" do
    Misbehaving.run(:well_behaved) do |server|
      manager = manager_of(server, pipelining: false, max_connections: 1)
      2.times { manager.verdict.closed_after(1, told: false) }
      counts = [0, 0.5, 5.5].map do |later|
        @later = later
        assert_equal [200], answers(manager, [exchange(server, "GET", "/#{later}")])
        server.connections
      end
      assert_equal [1, 2, 2], counts
      assert_nil manager.verdict.most_per_connection
      manager.close
    end
  end

  test "when a long answer comes, what was asked behind it is asked elsewhere, and not waited for" do
    gate = Queue.new
    way = Misbehaving::AsTold.new do |request, connection|
      next unless request.path == "/large"
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\nx")
      gate.pop
      "x" * 299_999
    end
    Misbehaving.run(way) do |server|
      manager = manager_of(server, max_connections: 2, memory: remembering(server, {}))
      answers(manager, [exchange(server, "GET", "/first")])
      large, *others = %w[/large /a /b /c].map { |path| exchange(server, "GET", path) }
      answers(manager, [large, *others]) { others.all? { |one| one.listener.done? } }
      assert_equal [200] * 3, others.map { |one| one.listener.done? && one.listener.status }
      refute_predicate large.listener, :done?
      gate << true
      assert_equal [200], answers(manager, [large], enqueue: false)
      manager.close
    ensure
      gate << true
    end
  end

  test "connections that are opened after one that broke off are asked one thing at first" do
    more = Queue.new
    way = Misbehaving::AsTold.new do |_, connection|
      next if connection.number == 1 && connection.count == 1
      next connection.reset && :nothing if connection.number == 1
      more << connection.more?(0.1) if connection.count == 1
      nil
    end
    Misbehaving.run(way) do |server|
      manager = manager_of(server, max_connections: 2, memory: remembering(server, "verdict" => PIPED.merge("score" => 20.0)))
      answers(manager, [exchange(server, "GET", "/first")])
      assert_equal [200] * 8, answers(manager, Array.new(8) { |i| exchange(server, "GET", "/#{i}") })
      assert_equal [false], Array.new(more.size) { more.pop }.uniq
      manager.close
    end
  end

  test "what is alone is asked at once where a connection stands idle: no places are weighed" do
    Misbehaving.run(:well_behaved) do |server|
      manager = manager_of(server)
      answers(manager, [exchange(server, "GET", "/first")])
      weighed = Class.new(StandardError)
      Client::Scheduler.stub(:new, ->(*) { raise weighed }) do
        assert_equal [200], answers(manager, [exchange(server, "GET", "/second")])
        assert_raises(weighed) { answers(manager, [exchange(server, "POST", "/posted")]) }
      end
      manager.close
    end
  end

  test "idle is a connection on which nothing is under way, that may be asked more, and is not out to find out" do
    Misbehaving.run(:well_behaved) do |server|
      manager = manager_of(server)
      3.times { manager.verdict.closed_after(2, told: false) }
      pool = manager.instance_variable_get(:@pool)
      stub = Struct.new(:idle?, :usable?, :probing, :asked, :brought)
      {[true, true, false, 1] => true, [false, true, false, 1] => false, [true, false, false, 1] => false, [true, true, true, 1] => false, [true, true, false, 2] => false}.each do |state, idle|
        pool.connections.replace([stub.new(*state)])
        assert_equal idle, !pool.idle.nil?, state.inspect
      end
      pool.connections.replace([10, 30, 20].map { |bytes| stub.new(true, true, false, 1, bytes) })
      assert_equal 30, pool.idle.brought
    end
  end

  test "when a long answer comes, what was asked behind it is not written any more, as far as it was not" do
    near, far = UNIXSocket.pair
    [near, far].each { |socket| socket.setsockopt(:SOCKET, :SNDBUF, 4_096) }
    connection = opened(near)
    exchanges = Array.new(100) { |i| exchange(nil, "GET", "/#{i}#{"x" * 1_000}") }
    connection.ask(exchanges, now)
    connection.flush(now)
    assert_equal 99, connection.give_up_tail.size
    seen = "".b
    while (bytes = far.read_nonblock(100_000, exception: false)).is_a?(String)
      seen << bytes
      connection.flush(now)
    end
    assert_includes seen, "\r\n\r\n"
    assert_operator seen.scan("GET /").size, :<, 50
    assert_empty connection.writing
  ensure
    [near, far].each(&:close)
  end

  private

  ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"
  private_constant :ANSWER

  # The manager of a server that is far, of whose answers so many may be under way; twenty exchanges, as far as they were asked; and the server's end.
  def far(room, full: 0.0)
    TCPServer.open("127.0.0.1", 0) do |server|
      manager = manager_of(Struct.new(:url).new("http://127.0.0.1:#{server.local_address.ip_port}/"))
      known = {window: room * 2_000.0, hoped_bytes: 2_000.0, answer_bytes: 2_000.0, connections: 1, round_trip: 0.5, full: full}
      known.each { |name, value| manager.link.define_singleton_method(name) { value } }
      manager.verdict.define_singleton_method(:state) { |_| :pipe }
      manager.verdict.define_singleton_method(:pipe?) { |_| true }
      exchanges = Array.new(20) { |i| exchange(nil, "GET", "/p#{i}") }
      answers(manager, exchanges) { manager.connections.first.unanswered.size == room }
      socket = server.accept
      yield manager, exchanges, socket
    ensure
      manager&.close
      socket&.close
    end
  end

  # The manager of a server that is pipelined, eight exchanges that were asked on two connections, and the server's ends. The kernel tells nothing.
  def on_two_connections
    TCPServer.open("127.0.0.1", 0) do |server|
      manager = manager_of(Struct.new(:url).new("http://127.0.0.1:#{server.local_address.ip_port}/"), max_connections: 2)
      {window: 1e6, connections: 2, round_trip: 0.4, answer_bytes: 6_100.0, guessed?: false}.each { |name, value| manager.link.define_singleton_method(name) { value } }
      manager.verdict.define_singleton_method(:state) { |_| :pipe }
      manager.verdict.define_singleton_method(:pipe?) { |_| true }
      Client::Transport.stub(:of, nil) do
        exchanges = Array.new(8) { |i| exchange(nil, "GET", "/p#{i}") }
        exchanges.each { |one| manager.enqueue(one) }
        manager.tend(now)
        sockets = Array.new(2) { server.accept }
        go_on(manager) { manager.connections.map { |connection| connection.unanswered.size } == [4, 4] }
        ports = manager.connections.map { |connection| connection.instance_variable_get(:@io).local_address.ip_port }
        yield manager, exchanges, sockets.sort_by { |socket| ports.index(socket.remote_address.ip_port) }
      ensure
        sockets&.each(&:close)
      end
    ensure
      manager&.close
    end
  end

  # Until it has come to that.
  def go_on(manager)
    await do
      reading, writing = manager.connections.flat_map(&:reading), manager.connections.flat_map(&:writing)
      ready = IO.select(reading, writing, nil, 0.01)
      manager.step(now, ready.flatten.to_h { |io| [io, true] }) if ready
      manager.tend(now)
      yield
    end
  end

  # All that has come.
  def hear(socket) = socket.wait_readable(60) ? socket.readpartial(10_000) : flunk("nothing comes")

  def unfinished?(manager) = manager.connections.first.instance_variable_get(:@outgoing).unfinished?

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC) + @later

  def await
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
    until yield
      flunk "it did not come to that" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep(0.002)
    end
  end

  def piped(client, server)
    client.get(server.url("/first"))
    client.get(%w[/one /two].map { |path| server.url(path) })
    assert_match(/is pipelined/, client.explain(server.url))
  end

  def manager_of(server, memory: Client::Memory.new(nil), **options)
    route = Client::Route.to(Hikyaku::HTTP::Address.parse(server.url).origin, proxy: nil)
    Client::OriginPool.new(route, Client::Settings.new(proxy: nil, **options), memory: memory, wake: -> {}, clock: -> { Time.now.to_f })
  end

  def remembering(server, record) = Client::Memory.new(nil).tap { |memory| memory.write(server.url.chomp("/"), {"verdict" => PIPED, **record}) }

  def exchange(server, method, path)
    url = server ? server.url(path) : "http://a.example#{path}"
    Client::Exchange.new(Hikyaku::HTTP::Request.new(method, url), Listener.new, number: @numbers += 1)
  end

  # Until all are answered, or what the block says, or nothing moves any more.
  def answers(manager, exchanges, enqueue: true)
    exchanges.each { |one| manager.enqueue(one) } if enqueue
    manager.tend(now)
    until exchanges.all? { |one| one.listener.done? } || (block_given? && yield)
      reading, writing = manager.connections.flat_map(&:reading), manager.connections.flat_map(&:writing)
      ready = IO.select(reading, writing, nil, 20) or break
      manager.step(now, ready.flatten.to_h { |io| [io, true] })
      manager.tend(now)
    end
    exchanges.map { |one| one.listener.status }
  end

  # A connection that stands.
  def opened(socket)
    opening = Struct.new(:socket) do
      def step(_now) = socket

      def round_trip = nil

      def close = nil
    end
    owner = Struct.new(:told) { def opened(_) = nil }.new
    route = Client::Route.to(Hikyaku::HTTP::Address.parse("http://a.example/").origin, proxy: nil)
    connection = Client::Connection.new(route, Client::Settings.new(proxy: nil), owner: owner, wake: -> {}, now: now)
    connection.instance_variable_set(:@opening, opening.new(socket))
    connection.step(now)
    connection
  end
end
