# frozen_string_literal: true

require "hikyaku/broker/ruby_engine/records"
require "hikyaku/log/journal"

# Where the journal says the names of queues (docs/journal.md, "What the broker keeps").
module BrokerContract
  tests do
    # What stands in the journal, by segments.
    def records_on_disk
      found = Hash.new { |segments, number| segments[number] = [] }
      recovery = Hikyaku::Log::Journal::Recovery.new(Hikyaku::Log::Journal::Files.new(@folder))
      assert_empty recovery.damages
      recovery.replay { |record| found[record.segment] << [record.type, record.body.dup] }
      found
    ensure
      recovery&.close
    end

    def names_in(records) = records.select { |type, _| type == 35 }.map { |_, body| body.byteslice(8..) }

    # In each segment a message's queue is named before it.
    def assert_stands_alone(segments)
      messages = 0
      segments.each do |number, records|
        named = {}
        records.each do |type, body|
          named[body.unpack1("V")] = true if type == 35
          next unless type == 32
          messages += 1
          assert named[body.unpack1("V", offset: 16)], "a message in segment #{number} is in a queue that is not named there"
        end
      end
      messages
    end

    # A journal as it was before queues were named where they are used: `yield` is given it in each segment.
    def write_journal(segments)
      records = Hikyaku::Broker::RubyEngine::Records
      journal = Hikyaku::Log::Journal.open(@folder, segment_bytes: SEGMENT)
      segments.times do |number|
        yield journal, number, records
        journal.append(32, 0, [number + 100_000, @wall, 9999, 4, 1, 0, "x" * 40_000].pack("Q<Q<VCCva*")) if number < segments - 1
        journal.write
      end
      journal.close
    end

    def message_record(id, queue, payload) = [id, @wall, queue, 4, 1, 0, payload].pack("Q<Q<VCCva*")

    test "each segment names the queues of its messages, and no others" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      sender = client
      200.times { |number| sender.say(Wire.send_message(to: "queue-#{number}", payload: "x" * 30, level: WRITTEN)) }
      settle
      60.times do |number|
        sender.say(Wire.send_message(to: "queue-#{number % 3}", payload: "x" * 9000, level: WRITTEN))
        settle
      end
      segments = records_on_disk
      assert_operator segments.size, :>, 8
      assert_equal 260, assert_stands_alone(segments)
      middle = segments.values[2..-2]
      middle.each { |records| assert_includes 1..4, names_in(records).uniq.size }
      middle.each { |records| assert_operator names_in(records).size, :<=, names_in(records).uniq.size + 1 }
      crash
      assert_equal [260, 200], stats.values_at(:messages, :queues)
    end

    test "queues without messages cost a segment nothing" do
      begin_engine(storage: true, segment_bytes: SEGMENT, max_queues: 5000)
      sender = client
      reader = client
      500.times do |number|
        reader.ask(:subscribe, subscription: 1, name: "queue-#{number}", credit: 1)
        sender.say(Wire.send_message(to: "queue-#{number}", payload: "x", level: WRITTEN))
        reader.frees(reader.pushes.first)
        reader.ask(:unsubscribe, subscription: 1)
      end
      send_and_free(client, client.receives("q"), 120)
      assert_equal 501, stats[:queues]
      assert_equal [%w[q]], records_on_disk.values.last(2).map { |records| names_in(records).uniq }.uniq
    end

    test "what is copied stands in a segment with the name of its queue, and a restart finds it" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      sender = client
      20.times { |number| sender.sends("old-#{number}", "straggler", level: WRITTEN) }
      send_and_free(client, client.receives("q"), 300, leaving: "left")
      assert_operator stats[:copied], :>=, 20
      assert_stands_alone(records_on_disk)
      3.times do
        crash
        assert_equal [35, 21], [stats[:messages], @engine.queues(wall: @wall).count { |queue| queue[:ready] > 0 }]
        send_and_free(client, client.receives("q"), 50)
        assert_stands_alone(records_on_disk)
      end
      assert_equal %w[straggler], client.receives("old-7").payloads
    end

    test "a queue without messages does not outlive a restart, and its name may be used again" do
      begin_engine(storage: true)
      reader = client.receives("freed")
      client.sends("freed", "x", level: WRITTEN)
      client.sends("kept", "x", level: WRITTEN)
      reader.frees(reader.pushes.first)
      [:crash, :restart].each do |ends|
        send(ends)
        assert_equal %w[kept], @engine.queues(wall: @wall).map { |queue| queue[:name] }
        assert_refused Code::NO_SUCH_QUEUE, client.queries(EXPLAIN, name: "freed")
      end
      client.sends("freed", "again", level: WRITTEN)
      client.sends("another", "x", level: WRITTEN)
      crash
      assert_equal %w[again], client.receives("freed").payloads
      assert_equal %w[x], client.receives("another").payloads
    end

    test "what is in memory alone is written down with the names of its queues when the broker stops" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      sender = client("web")
      20.times { |number| sender.sends("queue-#{number}", "x" * 4000, level: MEMORY, sequence: number + 1) }
      restart
      assert_equal 20, stats[:messages]
      assert_equal 20, assert_stands_alone(records_on_disk)
      crash
      assert_equal 20, stats[:queues]
      client("web")
      assert_equal 20, @welcome.low
    end

    test "a journal whose segments begin with all names is read, and shrinks" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      @engine.abort
      FileUtils.rm_rf(@folder)
      FileUtils.mkdir_p(@folder)
      write_journal(3) do |journal, number, records|
        journal.append(39, 0, [1 << 20, 1 << 10].pack("Q<Q<"))
        journal.append(35, 0, [9999, 0, 0, 4, "kept"].pack("VCCva*"))
        300.times { |each| journal.append(35, 0, [each + 1, 0, 0, 9, format("queue-%03d", each)].pack("VCCva*")) }
        100.times { |each| journal.append(37, 0, [each + 1, 8, 0, 5, 0, format("made-%03d", each)].pack("VvvQ<Q<a*")) }
        10.times { |each| journal.append(37, 0, [each + 500, 8, 0, 5, 7, format("used-%03d", each)].pack("VvvQ<Q<a*")) }
        journal.append(36, 0, [1, 0].pack("VV"))
      end
      2.times do |round|
        start_engine
        assert_equal [1, 10, 2], stats.values_at(:queues, :identities, :messages)
        client("used-003", epoch: 6 + round)
        assert_equal 7, @welcome.low
        client("made-003", epoch: 1)
        assert_equal 0, @welcome.low
        @engine.abort
      end
      assert_operator records_on_disk.values.last.size, :<, 15
      start_engine
      reader = client.receives("kept")
      reader.pushes.each { |push| reader.frees(push) }
      settle
      send_and_free(client, client.receives("q"), 60)
      crash
      assert_equal [0, 10, 0], stats.values_at(:messages, :identities, :queues)
    end

    test "a segment with a name that another one needs stays as long as that one" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      @engine.abort
      FileUtils.rm_rf(@folder)
      FileUtils.mkdir_p(@folder)
      # As a salvage may part what stood in one segment.
      journal = Hikyaku::Log::Journal.open(@folder, segment_bytes: SEGMENT)
      journal.append(39, 0, [1 << 20, 1 << 10].pack("Q<Q<"))
      journal.append(35, 0, [1, 0, 0, 6, "parted"].pack("VCCva*"))
      journal.append(32, 0, message_record(1, 1, "x" * 40_000))
      journal.append(32, 0, message_record(2, 1, "y" * 40_000))
      journal.close
      start_engine
      reader = client.receives("parted", credit: 1)
      reader.frees(reader.pushes.first)
      reader.credits(0)
      reader.vanishes
      3.times do
        send_and_free(client, client.receives("q"), 20)
        crash
        assert_equal 1, stats[:messages]
      end
      send_and_free(client, client.receives("q"), 400, leaving: "left")
      assert_operator stats[:copied], :>=, 1
      crash
      assert_equal ["y" * 40_000], client.receives("parted").payloads
    end
  end
end
