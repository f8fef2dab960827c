# frozen_string_literal: true

require "test_helper"
require "support/broker_process_case"

# A broker's process that is short of what it needs: file descriptors, its folder.
class BrokerResourcesTest < Minitest::Test
  include BrokerProcessCase

  # Connections that say nothing, more than there may be.
  def idlers(count, &connect)
    Array.new(count) { ending(connect.call) }
  rescue SystemCallError => error
    flunk "the broker is gone: #{error.message}"
  end

  # A connection that has been welcomed, and keeps its place.
  def greeted(broker)
    ending(broker.connect).tap do |socket|
      socket.write(Wire.hello(id: 1))
      assert socket.wait_readable(BrokerProcess::PATIENCE), "no answer to HELLO"
    end
  end

  # So many that segments are begun.
  def roll(sender, segments: 6)
    (segments * 11).times { |number| send_patiently(sender, "orders", "#{number} ".ljust(100_000, "x"), level: :synced) }
  end

  {256 => 600, 1024 => 2_000}.each do |limit, count|
    test "idle connections without credentials do no harm where #{limit} files may be open" do
      broker = start("--listen", "127.0.0.1:0", rlimit_nofile: limit)
      sender = ending(broker.client)
      port = broker.port
      idlers(count / 2) { broker.connect }
      idlers(count / 2) { TCPSocket.new("127.0.0.1", port) }
      roll(sender)
      assert_operator Dir.children("/proc/#{broker.pid}/fd").size, :<=, limit - 20
      eventually("its limit") { broker.log.match?(/for \d+ clients/) }
      # Who says nothing gives its place to who does.
      assert ending(broker.client(timeout: 60)).send_message("orders", "late", level: :synced)
      refute_includes broker.log, "ERROR"
      assert_predicate broker.stop, :success?
    end
  end

  test "a hub and a broker share what may be open, and neither takes all of it" do
    broker = serve(rlimit_nofile: 300)
    sender = ending(broker.client)
    hub = eventually("the hub's port") { broker.log[%r{is listening on http://127\.0\.0\.1:(\d+)}, 1] }.to_i
    idlers(200) { broker.connect }
    idlers(200) { TCPSocket.new("127.0.0.1", hub) } if BrokerProcess::ENGINE == "c" # Puma takes all that come
    roll(sender)
    assert ending(broker.client(timeout: 60)).send_message("orders", "late", level: :synced)
    assert_operator Dir.children("/proc/#{broker.pid}/fd").size, :<=, 290
    refute_includes broker.log, "ERROR"
  end

  test "a limit that is given and cannot be kept is said, with the one that counts" do
    broker = start("--max-connections", "5000", rlimit_nofile: 256)
    said = eventually("the warning") { broker.log[/broker_max_connections is 5000, but only 256 files may be open, which leaves room for (\d+) clients, and no more are accepted; .*ulimit -n/, 1] }
    # One that says nothing would give its place to the late one after a second.
    said.to_i.times { greeted(broker) }
    late = ending(broker.connect)
    assert_includes late.read, "connections"
    within = start("--max-connections", "20", rlimit_nofile: 256)
    refute_includes within.log, "WARN"
  end

  test "the soft limit is raised to the hard one" do
    broker = start(rlimit_nofile: [200, 2_000])
    assert_match(/^Max open files\s+2000\s+2000/, File.read("/proc/#{broker.pid}/limits"))
  end

  test "without a descriptor for a segment messages are refused, and taken when there is one" do
    broker = start
    sender = ending(broker.client)
    sender.send_message("orders", "first", level: :synced)
    # What is open stays open, and nothing more may be, as if others had taken the rest.
    set_limit(broker.pid, 3)
    taken = 0
    error = assert_raises(Client::Refused) { 200.times { send_patiently(sender, "orders", "x" * 10_000, level: :synced).then { taken += 1 } } }
    assert_equal Wire::Code::DISK_FULL, error.code
    assert_includes error.message, "no other file for its journal"
    receiver = sender.receiver("orders")
    receiver.receive(timeout: 60).ack(wait: true)
    set_limit(broker.pid, 4096)
    eventually("a descriptor") { sender.send_message("orders", "again", level: :synced) rescue nil } # standard:disable Style/RescueModifier
    assert_predicate broker.stop, :success?
    broker.start
    assert_equal taken + 1, broker.client.then { |client| ending(client).queues.first }.then { |queue| queue["ready"] || queue[:ready] }
  end

  def set_limit(pid, files)
    skip "there is no prlimit here" unless system("prlimit", "--pid", pid.to_s, "--nofile=#{files}:4096", err: IO::NULL)
  end

  test "a broker with more messages than its memory permits starts, says so, delivers, and takes none before there is room" do
    broker = start
    sender = broker.client
    20_000.times.map(&:to_s).each_slice(1_000) { |numbers| sender.send_batch("orders", numbers) }
    sender.close(timeout: 5)
    broker.kill
    small = start("--max-memory", "1m", storage: broker.storage)
    eventually("the warning") { small.log.include?("messages wait") }
    assert_equal 1, small.log.scan(/WARN.*20000 messages wait, which take \d+ bytes .*broker_max_memory is 1048576/).size, small.log
    client = ending(small.client)
    error = assert_raises(Client::Refused) { client.send_message("orders", "more") }
    assert_equal Wire::Code::OVERLOADED, error.code
    assert_includes error.message, "broker_max_memory"
    receiver = client.receiver("orders", credit: 1_000)
    20_000.times { |number| receiver.receive(timeout: 60).then { |delivery| assert_equal(number.to_s, delivery.payload) && delivery.ack } }
    eventually("room") { client.send_message("orders", "more") rescue nil } # standard:disable Style/RescueModifier
  end

  {"deleted" => ->(folder) { FileUtils.rm_rf(folder) },
   "moved away" => ->(folder) { File.rename(folder, "#{folder}.away") }}.each do |what, harm|
    test "a broker whose folder is #{what} acknowledges nothing more as synced, says why, and ends" do
      broker = start
      sender = broker.client
      sender.send_message("orders", "first", level: :synced)
      harm.call(broker.storage)
      assert_raises(Hikyaku::Error) { sender.send_message("orders", "lost", level: :synced, timeout: 5) }
      assert_equal 1, broker.wait.exitstatus
      assert_match(/ERROR.*while it was in use/, broker.log)
    ensure
      sender&.close(timeout: 0)
      FileUtils.rm_rf("#{broker.storage}.away")
    end
  end
end
