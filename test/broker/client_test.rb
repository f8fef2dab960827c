# frozen_string_literal: true

require "test_helper"
require "support/broker_script"
require "timeout"

# Threads, forks, the end and queries.
class BrokerClientTest < Minitest::Test
  include BrokerScript

  # --- threads, forks, the end ---

  test "many threads share one client" do
    broker(->(peer) { serve(peer.welcome) })
    client
    ids = Array.new(8) { Thread.new { Array.new(50) { @client.send_message("q", "x").id } } }.flat_map(&:value)
    assert_equal (101..500).to_a, ids.sort
  end

  test "a send that is given up in the middle harms no other" do
    broker(->(peer) { peer.welcome.then { serve(peer) { |frame| peer.take(frame) unless frame.payload == "slow" } } })
    client
    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { @client.send_message("q", "slow") } }
    assert_equal 102, @client.send_message("q", "x").id
  end

  test "a thread that is killed while it writes harms nobody else" do
    broker(->(peer) { peer.welcome.then { peer.io.wait_readable && sleep(0.1) }.then { serve(peer) } }, ->(peer) { serve(peer.welcome) })
    client
    thread = Thread.new { 50.times { @client.send_async("q", "x" * 100_000) } }
    eventually { thread.stop? }
    thread.kill.join
    assert @client.send_message("q", "x")
  end

  test "a forked child has a connection and an identity of its own, and the parent's goes on" do
    names = Queue.new
    broker(->(peer) { peer.welcome.then { names << peer.hello.identity.force_encoding("UTF-8") }.then { serve(peer) } })
    client(identity: "parent")
    receiver = @client.receiver("q")
    reader, writer = IO.pipe
    pid = fork do
      refused = begin
        receiver.receive(timeout: 0)
      rescue Client::Closed
        "refused"
      end
      writer.write("#{@client.send_message("q", "x").id} #{@client.identity == "parent"} #{refused}")
      writer.close
      exit!(0)
    end
    writer.close
    assert_equal "101 false refused", reader.read
    Process.wait(pid)
    assert_equal "parent", names.pop
    refute_equal "parent", names.pop
    assert_equal 101, @client.send_message("q", "x").id
  end

  test "close waits for what was sent, and then nothing more can be" do
    gate = Queue.new
    broker(lambda do |peer|
      peer.welcome
      frame = peer.read
      gate.pop
      peer.take(frame)
      serve(peer)
    end)
    client
    pending = @client.send_async("q", "x")
    closing = Thread.new { @client.close }
    assert_nil closing.join(0.05)
    gate << true
    assert closing.value
    assert_equal 101, pending.value(0).id
    assert_raises(Client::Closed) { @client.send_message("q", "x") }
    assert @client.close
  end

  test "close gives up in time, and says so, and what was sent is in doubt" do
    broker(->(peer) { peer.welcome.read_to_end })
    client
    pending = @client.send_async("q", "x")
    refute @client.close(timeout: 0.05)
    assert_raises(Client::OutcomeUnknown) { pending.value(60) }
  end

  # --- QUERY ---

  test "queries are asked and their reports read" do
    asked = Queue.new
    broker(lambda do |peer|
      peer.welcome
      loop do
        frame = peer.read
        case frame
        when Wire::Frames::Query
          asked << [frame.what, frame.kind, frame.name, frame.number, frame.limit]
          peer.write(Wire.report(id: frame.id, document: '{"queues":[{"name":"q"}],"count":3,"dead":[],"segments":[],"sessions":[]}'))
        when Wire::Frames::Ping then peer.write(Wire.receipt(id: frame.id))
        end
      end
    end)
    client
    assert_equal [{"name" => "q"}], @client.queues("q", limit: 5)
    assert_equal 3, @client.explain(42)["count"]
    assert_equal [3, 3, 3, [], [], []], [@client.replay("q"), @client.drop("q", 9), @client.purge("q", kind: :client), @client.dead("q", after: 4), @client.segments, @client.sessions]
    @client.explain_queue("q")
    assert_operator @client.ping, :>=, 0
    assert_equal [[1, 0, "q", 0, 5], [2, 0, "", 42, 0], [4, 0, "q", 0, 0], [5, 0, "q", 9, 0], [8, 1, "q", 0, 0], [3, 0, "q", 4, 100], [6, 0, "", 0, 0], [7, 0, "", 0, 0], [2, 0, "q", 0, 0]],
      Array.new(9) { asked.pop }
  end

  test "a query that is refused raises, and one whose connection breaks is in doubt" do
    broker(->(peer) { peer.welcome.then { peer.refuse(peer.read, Code::NO_SUCH_MESSAGE) }.then { peer.read } }, ->(peer) { serve(peer.welcome) })
    client
    assert_raises(Client::NoSuchMessage) { @client.explain(1) }
    assert_raises(Client::OutcomeUnknown) { @client.explain(1) }
  end
end
