# frozen_string_literal: true

require "support/fleet"
require "support/native_test"

# How the server of the engine in C ends: whoever has begun a request is answered, streams are told when to come back, and nobody
# can keep it from ending.
class Integration::NativeStopTest < Integration::NativeTest
  BOOK = Integration::BOOK
  # Seconds that a stop may take, whatever clients do, and some for a busy machine.
  BOUND = 5 + 1 + 4
  HEALTH = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
  UNFINISHED = "POST #{PATH} HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\ntopic"

  %w[TERM INT].each do |signal|
    test "on #{signal} what was acknowledged has reached its readers, these are told when to come back, and the code is 0" do
      hub = start_native
      streams = Array.new(30) { follow(hub, BOOK) }
      publishers = Array.new(3) { |number| Thread.new { publish_until_refused(hub, number) } }
      eventually("some publishes") { hub.metrics["publishes_total"] > 100 }
      status = hub.stop(signal)
      acknowledged = publishers.flat_map(&:value)
      assert_equal [true, 0], [status.exited?, status.exitstatus], hub.log
      streams.each do |stream|
        received = stream.rest.map(&:data)
        assert_empty acknowledged - received, "acknowledged, and lost"
        assert_equal received.uniq, received
        assert_operator stream.retry_after, :>=, 500
      end
      assert_operator streams.map(&:retry_after).uniq.size, :>, 10, "all come back at once"
      assert_raises(Errno::ECONNREFUSED) { hub.client.connect }
    end
  end

  test "requests that have begun are answered, those of Ruby's and pipelined ones too; connections that wait for one are closed" do
    hub = start_native
    stream = follow(hub, BOOK)
    idle = behind(HEALTH, hub, "")
    hub.publish(BOOK, "0")
    request = publication("topic=#{BOOK}&data=1", token: hub.publisher)
    known = behind(publication("topic=#{BOOK}&data=0", token: hub.publisher), hub, request[0..-5])
    refused = publication("topic=#{BOOK}&data=2", token: "a.b.c")
    asked = behind(HEALTH, hub, refused[0..-5])
    head = behind(HEALTH, hub, "GET /healthz HT")
    Process.kill("TERM", hub.pid)
    assert_equal "", idle.body_part(HttpClient.now + HttpClient::PATIENCE).to_s, "it waits for a request that nobody sends"
    eventually("the end of new connections") { refuses_connections?(hub) }
    known.write(request[-4..] + publication("topic=#{BOOK}&data=3", token: hub.publisher))
    asked.write(refused[-4..])
    head.write("TP/1.1\r\nHost: a\r\n\r\n")
    assert_equal 200, answer(known).status
    assert_equal 401, answer(asked).status
    assert_equal 200, answer(head).status
    data = stream.rest.map(&:data)
    assert_equal %w[0 0 1], data.first(3)
    assert_equal 0, hub.wait.exitstatus
  end

  test "clients that do not read, do not write, and do not end cannot keep it: it ends within its time, and those who can are told" do
    hub = start_native("--history", "64M")
    unread = Array.new(5) { socket(hub).tap { |socket| socket.write(subscription_to("#{BOOK}/large")) } }
    3.times { behind(HEALTH, hub, UNFINISHED) }
    stream = follow(hub, BOOK)
    eventually("all of them") { hub.metrics["subscribers"] == 6 }
    100.times { hub.publish("#{BOOK}/large", "x" * 100_000) }
    began = HttpClient.now
    Process.kill("TERM", hub.pid)
    assert_empty stream.rest(BOUND)
    assert_operator stream.retry_after, :>=, 500
    assert_equal 0, hub.wait.exitstatus
    assert_operator HttpClient.now - began, :<, BOUND
    unread.each(&:close)
  end

  test "thousands of streams end with a time to come back, each its own" do
    hub = start_native("--max-connections-per-address", "2000")
    fleet = ending(Fleet.new(hub.port, subscription_to(BOOK)))
    fleet.open(1_000)
    Process.kill("TERM", hub.pid)
    fleet.pump(HttpClient.now + BOUND, "the end of all streams") { fleet.members.all?(&:ended?) }
    times = fleet.members.map { |member| member.bytes[/^retry: (\d+)\n\n\z/, 1].to_i }
    assert_operator times.min, :>=, 500
    assert_operator times.uniq.size, :>, 300, "all come back at once"
    assert_equal 0, hub.wait.exitstatus
  end

  test "a second signal ends the process at once, whoever still sends" do
    hub = start_native
    behind(HEALTH, hub, UNFINISHED)
    Process.kill("TERM", hub.pid)
    eventually("the log's word of the stop") { hub.log.include?("stopping on TERM") }
    sleep 0.1
    Process.kill("TERM", hub.pid)
    assert_equal 1, hub.wait.exitstatus
  end

  private

  # Begins a request behind one that is answered: it was read with it.
  #
  # @return [HttpClient::Connection]
  def behind(request, hub, beginning)
    connection = connect(hub)
    connection.write(request + beginning)
    assert_equal 200, answer(connection).status
    connection
  end

  def refuses_connections?(hub)
    hub.client.connect.close
    false
  rescue Errno::ECONNREFUSED, Errno::ECONNRESET
    true
  end

  # @return [Array<String>] what was acknowledged
  def publish_until_refused(hub, number)
    connection = hub.client.connect
    (0..).each_with_object([]) do |index, done|
      connection.write(publication("topic=#{BOOK}&data=#{number}-#{index}", token: hub.publisher))
      return done unless answer(connection).status == 200
      done << "#{number}-#{index}"
    rescue EOFError, SystemCallError
      return done
    end
  ensure
    connection&.close
  end
end
