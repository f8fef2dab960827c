# frozen_string_literal: true

require "test_helper"
require "hikyaku/broker/server"
require "hikyaku/broker/server/metrics"

class BrokerMetricsTest < Minitest::Test
  Metrics = Hikyaku::Broker::Server::Metrics
  Driver = Struct.new(:stats, :queues)
  STATS = {
    sessions: 2, queues: 3, messages: 9, messages_lost: 3, bytes: 900, memory_bytes: 1_000, index_bytes: 576, ready: 4, delayed: 3, out: 2, dead: 1, received: [5, 6, 7],
    delivered: 20, freed: 10, redelivered: 3, failed: 2, crashed: 1, released: 4, expired: 5, duplicates: 6, stale: 7, copied: 8,
    refused: Array.new(24) { |code| code * 10 },
    journal: {records: 100, bytes: 4_096, batches: 50, syncs: 5, sync_ns: 2_500_000_000, longest_sync_ns: 750_000_000, segments: 2, spares: 1, torn_repaired: 0, torn_places: 0, torn_missing: 0}
  }.freeze

  def queue(name, **figures)
    {name: name, kind: 0, ready: 0, delayed: 0, out: 0, dead: 0, bytes: 0, oldest_ms: 0, receivers: 0, sent: 0, freed: 0, redelivered: 0,
     failed: 0, crashed: 0, expired: 0}.merge(figures)
  end

  def show(stats: STATS, queues: [], **options) = Metrics.new(Driver.new(stats, queues), **options).to_s

  # Values by name and labels.
  def values(text) = text.scan(/^(hikyaku_broker_\w+(?:\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?) (\S+)$/).to_h { |name, value| [name.delete_prefix("hikyaku_broker_"), value.to_f] }

  test "every figure has a help, a type and a value" do
    text = show(queues: [queue("orders")])
    types = text.scan(/^# TYPE (\w+) (counter|gauge|summary)$/).to_h
    names = text.scan(/^(hikyaku_broker_\w+)/).flatten.uniq.map { |name| types.key?(name) ? name : name.sub(/_(?:sum|count)\z/, "") }.uniq
    assert_equal types.keys.sort, names.sort
    names.each { |name| assert_match(/^# HELP #{name} [A-Z]/, text) }
    types.each { |name, type| assert_equal type == "summary", !text.match?(/^#{name}[ {]/), name }
    assert_equal text.scan(/^# TYPE (\S+)/).flatten, text.scan(/^# TYPE (\S+)/).flatten.uniq
    assert text.end_with?("\n")
    refute_match(/^$/, text)
  end

  test "the figures are the engine's" do
    figures = values(show)
    assert_equal 2, figures["sessions"]
    assert_equal 4, figures['messages_by_state{state="ready"}']
    assert_equal 7, figures['received_total{level="synced"}']
    assert_equal 150, figures['refusals_total{code="queue_full"}']
    assert_equal [5, 2.5, 0.75], figures.values_at("sync_seconds_count", "sync_seconds_sum", "sync_longest_seconds")
  end

  test "for a page there are the totals, and the largest queues, those with dead letters first" do
    queues = [queue("small", ready: 1), queue("large", ready: 9, oldest_ms: 1_500, receivers: 2), queue("sick", dead: 1), queue("\xFF".b, out: 4)]
    overview = Metrics.new(Driver.new(STATS, queues), shown: 3).overview
    assert_equal({queues: 3, ready: 4, delayed: 3, out: 2, dead: 1}, overview.except(:largest))
    assert_equal %w[sick large ?], overview[:largest].map { |each| each[:name] }
    assert_equal({name: "large", ready: 9, delayed: 0, out: 0, dead: 0, receivers: 2, oldest_ms: 1_500}, overview[:largest][1])
    assert_empty Metrics.new(Driver.new(STATS.merge(queues: 10_001), queues)).overview[:largest], "so many are not looked at each second"
    assert_nil Metrics.new(Driver.new(nil, nil)).overview
  end

  test "the waits for the disk are one summary" do
    lines = show.lines(chomp: true).grep(/sync_seconds/).map { |line| line.delete_prefix("# ") }
    assert_equal ["HELP hikyaku_broker_sync_seconds Times of fdatasync", "TYPE hikyaku_broker_sync_seconds summary",
      "hikyaku_broker_sync_seconds_sum 2.5", "hikyaku_broker_sync_seconds_count 5"], lines
  end

  test "the longest wait is the longest since the start, whoever asks and however often" do
    longest = [750_000_000, 0, 500_000_000, 2_000_000_000, 0]
    driver = Driver.new(STATS, [])
    metrics = Metrics.new(driver)
    shown = longest.map do |ns|
      driver.stats = STATS.merge(journal: STATS[:journal].merge(longest_sync_ns: ns))
      values(metrics.to_s)["sync_longest_seconds"]
    end
    assert_equal [0.75, 0.75, 0.75, 2.0, 2.0], shown
  end

  test "each queue has its depth, its age and its counters" do
    figures = values(show(queues: [queue("orders", ready: 5, out: 1, oldest_ms: 1_500, sent: 9), queue("printer", kind: 1, dead: 2)]))
    assert_equal 5, figures['queue_messages{queue="orders",kind="queue",state="ready"}']
    assert_equal 2, figures['queue_messages{queue="printer",kind="client",state="dead"}']
    assert_equal 1.5, figures['queue_oldest_seconds{queue="orders",kind="queue"}']
    assert_equal 9, figures['queue_sent_total{queue="orders",kind="queue"}']
  end

  test "a name cannot leave its label" do
    text = show(queues: [queue("a\"} 1\nhikyaku_broker_evil 1\n\\"), queue("b\xff".b)])
    refute_match(/^hikyaku_broker_evil/, text)
    assert_includes text, 'queue="a\\"} 1\\nhikyaku_broker_evil 1\\n\\\\"'
    assert_includes text, 'queue="b?"'
    assert text.valid_encoding?
  end

  test "of many queues the longest are shown, and it is said how many are not" do
    figures = values(show(queues: Array.new(20) { |number| queue("q#{number}", ready: number) }, shown: 5))
    shown = figures.keys.filter_map { |name| name[/\Aqueue_bytes\{queue="(\w+)"/, 1] }
    assert_equal %w[q15 q16 q17 q18 q19], shown.sort
    assert_equal 15, figures["queues_not_shown"]
  end

  test "a broker without storage has no figures of a journal, and one that has ended none at all" do
    refute_match(/journal|sync/, show(stats: STATS.merge(journal: nil)).gsub('level="synced"', ""))
    assert_equal "", show(stats: nil)
  end
end
