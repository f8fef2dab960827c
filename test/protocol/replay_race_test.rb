# frozen_string_literal: true

require "support/protocol_test"

# No gap and no duplicate between replay and live, while others publish: Mercure draft-08, section "Reconnection, State
# Reconciliation, and Event Sourcing".
class Protocol::ReplayRaceTest < Protocol::Test
  settings heartbeat: 0.3

  PUBLISHERS = 4
  UPDATES = 150

  test "whoever comes with a cursor amid publishing gets exactly what follows it, in the order of all" do
    first = publish(topic, "start")
    witness = follow(topic)
    publishing = publish_from_all_sides
    readers = Array.new(12) do
      # Each has, when it comes, what the witness has seen by then.
      seen = witness.take(20).last.id
      [seen, follow(topic, headers: {"last-event-id" => seen})]
    end
    readers << [first, follow(topic, headers: {"last-event-id" => first})]
    publishing.each(&:join)
    publish(topic, "finish")
    everything = replay
    assert_equal PUBLISHERS * UPDATES + 2, everything.size
    readers.each do |seen, stream|
      assert_equal seen, stream["mercure-last-event-id"]
      following = everything.drop(everything.index { |event| event.id == seen } + 1)
      assert_equal following, stream.take(following.size)
    end
  end

  test "a reader that breaks off and comes back again and again sees each update once, in order" do
    cursor = publish(topic, "start")
    publishing = publish_from_all_sides
    finish = Thread.new { publishing.each(&:join).then { publish(topic, "finish") } }
    seen = []
    rounds = 0
    until seen.last&.data == "finish"
      stream = follow(topic, headers: {"last-event-id" => cursor})
      assert_equal cursor, stream["mercure-last-event-id"]
      30.times { seen << stream.next unless seen.last&.data == "finish" }
      cursor = seen.last.id
      stream.close
      rounds += 1
    end
    finish.join
    assert_operator rounds, :>, 10
    assert_equal replay.drop(1), seen
  end

  test "readers of parts of the updates get exactly their parts, live as again, in the order of all" do
    topics = Array.new(3) { |i| topic(i) }
    first = publish(topics, "start")
    publishing = publish_from_all_sides do |n, i|
      [topics.sample(1 + (i % 3), random: Random.new(n * 1000 + i)), (i % 4 == 0) ? {private: "on"} : {}]
    end
    wanted = [[0], [1], [2], [0, 1], [1, 2], [0, 1, 2]].map { |places| topics.values_at(*places) }
    plans = wanted.product([nil, subscriber(topics[1]), subscriber(*topics)])
    readers = plans.map { |wanted, token| follow(*wanted, token: token, headers: {"last-event-id" => first}) }
    publishing.each(&:join)
    publish(topics, "finish")
    again = plans.map { |wanted, token| follow(*wanted, token: token, headers: {"last-event-id" => first}).until("finish") }
    assert_equal again, readers.map { |stream| stream.until("finish") }
    everything = again.last.map(&:data)
    assert_equal PUBLISHERS * UPDATES, everything.size
    PUBLISHERS.times { |n| assert_equal Array.new(UPDATES) { |i| "#{n}:#{i}" }, everything.grep(/\A#{n}:/), "a publisher's own order" }
    # Private updates came to those alone who may read them.
    assert_operator again[1].size, :>, again[0].size
    assert_equal everything.size, again.map(&:size).max
  end

  private

  # Updates "publisher:number", on the test's topic unless the block says which topics and fields.
  def publish_from_all_sides
    own = publisher
    place = topic
    Array.new(PUBLISHERS) do |n|
      Thread.new do
        UPDATES.times do |i|
          topics, fields = block_given? ? yield(n, i) : [place, {}]
          publish(topics, "#{n}:#{i}", token: own, **fields)
        end
      end
    end
  end

  # Everything, from a stream that has nothing live in it but the end.
  def replay
    stream = subscribe("match" => topic, "last_event_id" => "earliest")
    publish(topic, mark = "mark #{rand}")
    stream.until(mark)
  end
end
