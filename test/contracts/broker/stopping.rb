# frozen_string_literal: true

# The end: DRAIN, and storage that fails (docs/protocol.md, section 10).
module BrokerContract
  tests do
    test "a broker that is about to stop says so, takes and delivers nothing more, and waits for what is out" do
      reader = client.receives("q", credit: 1)
      sender = client
      sender.sends_all("q", %w[a b])
      push = reader.pushes.first
      stranger = connect
      refute @engine.drained?
      @engine.drain(1500)
      turn
      [reader, sender].each { |each| assert_equal [1500], each.take { |frame| frame.is_a?(Frames::Draining) }.map(&:retry_after) }
      assert_empty stranger.frames
      error = assert_refused(Code::DRAINING, sender.sends("q", "c"))
      assert_equal 1500, error.retry_after
      assert_refused Code::DRAINING, sender.sends_all("q", %w[c d])
      refute @engine.drained?
      assert_equal 1, reader.touches(push).count
      assert_equal 1, reader.frees(push).count
      assert_empty reader.pushes
      assert @engine.drained?
      stranger.say(Wire.hello)
      assert_ended stranger, Code::DRAINING
      @engine.drain(9)
      turn
      assert_empty reader.frames
    end

    test "what is not acknowledged yet is waited for" do
      begin_engine(storage: true)
      sender = client
      sender.sends("q", "a", level: 2, id: 50)
      @engine.drain(1000)
      turn
      refute @engine.drained?
      settle
      assert @engine.drained?
      assert_equal 2, sender.answer(50).level
    end

    test "when storage fails everybody is told, nothing is acknowledged, and nothing is taken any more" do
      begin_engine(storage: true)
      sender = client
      assert_taken sender.sends("q", "a", level: 1)
      with_failing_storage do
        @engine.receive(sender.session, Wire.send_message(to: "q", payload: "b", level: 1, id: 77), now: @now, wall: @wall)
        assert_raises(Hikyaku::Broker::StorageFailed) { @engine.commit(wall: @wall) }
      end
      deliver
      assert_nil sender.take { |frame| frame.is_a?(Frames::Ack) && frame.id == 77 }.first
      assert_ended sender, Code::FAILED
      assert_raises(Hikyaku::Broker::StorageFailed) { @engine.commit(wall: @wall) }
      crash
      assert_includes client.receives("q").payloads, "a"
    end

    {"deleted" => ->(folder) { FileUtils.rm_rf(folder) },
     "moved away" => ->(folder) { File.rename(folder, "#{folder}.away") },
     "replaced" => ->(folder) { File.rename(folder, "#{folder}.away") && Dir.mkdir(folder) },
     "robbed of its segments" => ->(folder) { Dir["#{folder}/*.seg"].each { |file| File.unlink(file) } }}.each do |what, harm|
      test "nothing is acknowledged as synced in a folder that was #{what}, and everybody is told" do
        begin_engine(storage: true)
        sender = client
        sender.sends("q", "a", level: 2, id: 50)
        settle
        assert_equal 2, sender.answer(50).level
        harm.call(@folder)
        assert_raises(Hikyaku::Broker::StorageFailed) do
          sender.sends("q", "b", level: 2, id: 51)
          settle
        end.then { |error| assert_includes error.message, "while it was in use" }
        deliver
        assert_empty sender.take { |frame| frame.is_a?(Frames::Ack) && frame.id == 51 }
        assert_ended sender, Code::FAILED
      ensure
        FileUtils.rm_rf("#{@folder}.away")
      end
    end

    test "who was asked about before the broker began to stop is let in no more" do
      begin_engine(open: false)
      stranger = connect.say(Wire.hello)
      @engine.drain(1000)
      assert @engine.permit(@engine.next_auth_request.serial, [Permission.all], now: @now, wall: @wall)
      turn
      assert_ended stranger, Code::DRAINING
    end

    test "an engine that has let go of everything lets another have the journal" do
      begin_engine(storage: true)
      assert_raises(Hikyaku::Error) { new_engine(now: @now, wall: @wall, storage: @folder) }
      @engine.abort
      start_engine
      assert_taken client.sends("q", "a", level: 1)
    end

    test "a message in memory that fits into no segment keeps no broker from stopping in order, nor other messages from being kept" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      sender = client("web")
      ["before", "x" * SEGMENT, "behind"].each_with_index { |payload, index| assert_taken sender.sends("q", payload, level: MEMORY, sequence: index + 1) }
      restart
      assert_equal %w[before behind], client.receives("q").payloads
      client("web")
      assert_equal 3, @welcome.low
    end
  end
end
