# frozen_string_literal: true

require "support/integration"
require "hikyaku/client/event_source"
require "hikyaku/client/publisher"

# kill -9 and a restart on the same port, under load.
class CrashTest < Integration::Test
  include AccessTokens

  TOPIC = "https://example.com/crash"
  SECRET = "!ChangeThisMercureHubJWTSecretKey!"
  READERS = 200
  NODES = 3

  # Reads one stream and keeps what it got.
  class Reader
    attr_reader :events

    def initialize(url)
      @events = []
      @opened = 0
      @source = Hikyaku::EventSource.new(url, params: {match: TOPIC}, retry_seconds: 0.3, max_retry_seconds: 1, on_open: -> { @opened += 1 })
      @thread = Thread.new { @source.each { |event| @events << [event.type, event.id, event.data] } }
      @thread.report_on_exception = false
    end

    def open? = @opened > 0

    def close
      @source.close
      @thread.join(60) or raise "a reader does not end"
    end
  end

  # Publishes numbers, each with a key of its own and as often as it takes, until told to stop.
  class Writer
    # @return [Array<Array(String, Float)>] data of what was acknowledged, and when it was sent
    attr_reader :acknowledged
    # @return [Array<String>] data of which nobody knows whether it was published
    attr_reader :doubtful

    def initialize(url, name)
      @publisher = Hikyaku::Publisher.new(url, key: SECRET)
      @acknowledged = []
      @doubtful = []
      @thread = Thread.new { (0..).each { |number| @stopped ? break : publish("#{name}-#{number}") } }
    end

    def stop
      @stopped = true
      @thread.join(60) or raise "a writer does not end"
      @publisher.close
    end

    private

    def publish(data)
      sent_at = HttpClient.now
      @publisher.publish(TOPIC, data, idempotency_key: data)
      @acknowledged << [data, sent_at]
      sleep 0.04
    rescue Hikyaku::Publisher::Unreachable
      sleep 0.05
      retry
    rescue Hikyaku::Publisher::OutcomeUnknown
      @doubtful << data
    end
  end

  test "readers come back by themselves, are told in-band, miss nothing since and get nothing twice; writers lose nothing acknowledged since" do
    hub = start_hub("--max-connections-per-address", "1000", "--log-level", "warn")
    node = run_node(url: subscription(hub, TOPIC), types: ["mercure"], clients: NODES)
    readers = Array.new(READERS) { ending(Reader.new(hub.url)) }
    eventually("all readers") { readers.all?(&:open?) && said(node, "open").size == NODES }
    writers = Array.new(2) { |number| Writer.new(hub.url, "w#{number}") }
    sleep 1
    hub.stop("KILL")
    killed = HttpClient.now
    sleep 0.3
    hub.start
    eventually("publishes after the restart") { writers.all? { |writer| writer.acknowledged.count { |_, at| at > killed } > 15 } }
    writers.each(&:stop)
    hub.publish([["topic", TOPIC], ["data", "end"]])

    log = follow(hub, TOPIC, last_event_id: "earliest").until("end").map { |event| [event.type, event.id, event.data] }
    after = log.map(&:last)
    assert_equal after.uniq, after, "published twice"
    assert_empty writers.flat_map { |writer| writer.acknowledged.filter_map { |data, at| data if at > killed } } - after, "acknowledged, and lost"
    2.times { |name| assert_equal numbers(after, name).sort, numbers(after, name), "out of order" }

    readers.each { |reader| eventually("the end, for a reader") { reader.events.last&.last == "end" } }
    histories = readers.map(&:events)
    eventually("the end, for node") { said(node, "event").count { |event| event["data"] == "end" } == NODES }
    histories += said(node, "event").group_by { |event| event["client"] }.values.map { |events| events.map { |event| event.values_at("type", "id", "data") } }
    assert_equal READERS + NODES, histories.size
    histories.each { |events| examine(events, log) }
  end

  private

  # What a reader got: an unbroken part from before, one gap, and then the whole log.
  def examine(events, log)
    gaps = events.each_index.select { |index| events[index].first == "mercure" }
    assert_equal 1, gaps.size, events.map(&:last).last(5).inspect
    before, since = events[0...gaps.first], events[(gaps.first + 1)..]
    refute_empty before
    gap = JSON.parse(events[gaps.first].last)
    assert_equal ["gap", "unknown", before.last[1]], gap.values_at("type", "reason", "last_event_id")
    2.times { |name| assert_equal [*0...numbers(before, name).size], numbers(before, name), "before the crash" }
    assert_equal log, since[0...-1]
    assert_empty before.map(&:last) & since.map(&:last), "published before the crash and again after it"
  end

  def numbers(events, name) = events.filter_map { |event| Array(event).last[/\Aw#{name}-(\d+)\z/, 1]&.to_i }
end
