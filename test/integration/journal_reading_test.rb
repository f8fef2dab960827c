# frozen_string_literal: true

require "support/broker_process"
require "support/integration"
require "support/paused_reads"
require "socket"

# What begins with a journal serves nobody before it was read, and ends when it is told to while it is read.
class JournalReadingTest < Integration::Test
  TOPIC = "https://example.com/kept"
  COUNT = 12

  def setup
    super
    reason = PausedReads.missing || BrokerProcess.missing
    skip reason if reason
    @folder = Dir.mktmpdir("journal-reading")
    @reads = ending(PausedReads.new)
    @port = FreePort.pick
  end

  def teardown
    super
    FileUtils.rm_rf(@folder) if @folder
  end

  test "a hub refuses connections until its journal was read, and says then that it listens" do
    assert_ready_when_read(hub) { |hub| refuses?(hub.port) }
  end

  test "a broker refuses connections until its journal was read, and says then that it listens" do
    assert_ready_when_read(broker) { |broker| refuses?(@port) && !File.exist?(broker.socket) }
  end

  test "a signal while a hub's journal is read ends it in order and soon, and nothing is lost" do
    hub = self.hub
    assert_ended_while_read(hub)
    hub.start
    events = follow(hub, TOPIC, last_event_id: "earliest")
    assert_equal COUNT, Array.new(COUNT) { events.next.data.to_i }.uniq.size
  end

  test "a signal while a broker's journal is read ends it in order and soon, and nothing is lost" do
    broker = self.broker
    assert_ended_while_read(broker)
    broker.start
    client = ending(broker.client)
    assert_equal COUNT, client.queues.sum { |queue| queue.fetch("ready") }
  end

  private

  # @return [RunningHub] that does not run, with a journal of several segments
  def hub
    start_hub("--storage", @folder, "--history", "4M").tap do |hub|
      COUNT.times { |number| hub.publish([["topic", TOPIC], ["data", number.to_s.ljust(200_000)]]) }
      hub.stop
    end
  end

  def broker
    ending(BrokerProcess.new("--listen", "127.0.0.1:#{@port}")).tap do |broker|
      client = broker.client
      COUNT.times { |number| BrokerProcess.send_patiently(client, "kept", number.to_s.ljust(200_000)) }
      client.close
      broker.stop
    end
  end

  # @yieldreturn [Boolean] whether it lets nobody in
  def assert_ready_when_read(process)
    before = process.log.scan("listen").size
    process.launch(@reads.environment)
    count = 0
    count += 1 while @reads.once(unless_it: -> { process.answers? }) do
      assert yield(process), "somebody can connect while the journal is read"
      assert_equal before, process.log.scan("listen").size, "it says that it listens while the journal is read"
    end
    assert_operator count, :>, 3
    eventually("a line that it listens") { process.log.scan("listen").size > before }
  end

  def assert_ended_while_read(process)
    said = process.log.bytesize
    process.launch(@reads.environment)
    @reads.once { tell(process.pid) }
    # The one that was begun, and whether it was all of a file.
    2.times { @reads.once(unless_it: -> { File.read("/proc/#{process.pid}/stat")[/\) (\w)/, 1] == "Z" }) }
    assert_predicate process.wait, :success?
    said = process.log.byteslice(said..)
    assert_match(/INFO.*stopped on TERM, while the journal was read/, said)
    refute_match(/listen|ERROR/, said)
  end

  # Returns when the process has taken the signal.
  def tell(pid)
    Process.kill("TERM", pid)
    eventually("the signal to come") { File.read("/proc/#{pid}/status").scan(/^(?:Shd|Sig)Pnd:\s*(\h+)/).flatten.all?(/\A0+\z/) }
  end

  def refuses?(port)
    Socket.tcp("127.0.0.1", port, connect_timeout: 5).close
    false
  rescue Errno::ECONNREFUSED
    true
  end
end
