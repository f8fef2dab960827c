# frozen_string_literal: true

# Which identities are remembered, and for how long (docs/protocol.md, section 6).
module BrokerContract
  tests do
    # Numbers a message, and vanishes.
    def sends_as(identity, **fields)
      sender = client(identity)
      assert_settled sender, payload: "x", sequence: @welcome.low + 1, **fields
      sender.vanishes
    end

    # It is taken, though a segment may end meanwhile.
    def assert_settled(sender, **fields)
      sender.say(Wire.send_message(id: 7000, to: "q", **fields))
      settle
      assert_taken sender.answer(7000)
    end

    # Identities with maps at their longest.
    def remember_at_their_longest(count)
      count.times do |number|
        sender = client(format("%0255d", number))
        assert_settled sender, payload: "x", sequence: 4096, level: WRITTEN
        sender.vanishes
      end
    end

    def listed(**fields) = client.queries(IDENTITIES, **fields)[:identities].map { |each| each[:identity] }

    def journal_bytes = stats[:journal][:bytes]

    test "an identity that has numbered no message is forgotten with its connection" do
      begin_engine(storage: true)
      before = journal_bytes
      300.times do |number|
        each = client("made-up-#{number}", epoch: 9)
        each.ask(:subscribe, subscription: 1, name: "q") if number.even?
        each.say(Wire.drain) if number % 3 == 0
        each.vanishes
      end
      assert_equal 0, stats[:identities]
      assert_equal before, journal_bytes
      client("made-up-1", epoch: 1)
      assert_kind_of Frames::Welcome, @welcome
      [:crash, :restart].each do |ends|
        client("connected", epoch: 9)
        send(ends)
        assert_equal 0, stats[:identities]
        assert_kind_of Frames::Welcome, client("connected", epoch: 1) && @welcome
      end
    end

    test "an identity whose client does not need it any more is forgotten with its connection, and only then" do
      begin_engine(storage: true)
      300.times do |number|
        each = client("made-up-#{number}")
        assert_taken each.sends("q", "x", sequence: 1, level: number % 2)
        each.say(Wire.forget)
        assert_equal 1, stats[:identities]
        each.vanishes
      end
      assert_equal [0, 300], stats.values_at(:identities, :messages)
      crash
      assert_equal [0, 150], stats.values_at(:identities, :messages)
      last = client("made-up")
      last.sends("q", "x", sequence: 1, level: WRITTEN)
      last.say(Wire.forget)
      restart
      assert_equal 0, stats[:identities]
    end

    test "until its connection ends it is known, and fenced, as before" do
      older = client("web", epoch: 5)
      assert_taken older.sends("q", "1", sequence: 1)
      older.say(Wire.forget)
      assert older.sends("q", "1", sequence: 1).duplicate?
      assert_ended connect.say(Wire.hello(identity: "web", epoch: 5)), Code::FENCED
      newer = client("web", epoch: 6)
      assert_ended older, Code::FENCED
      assert_equal 1, @welcome.low
      newer.vanishes
      assert_equal 1, stats[:identities]
    end

    test "a client that takes over from one that has numbered nothing goes on" do
      older = client("web", epoch: 1)
      newer = client("web", epoch: 2)
      assert_ended older, Code::FENCED
      older.vanishes
      assert_taken newer.sends("q", "1", sequence: 1)
      assert newer.sends("q", "1", sequence: 1).duplicate?
      assert_ended connect.say(Wire.hello(identity: "web", epoch: 2)), Code::FENCED
      newer.vanishes
      assert_equal 1, stats[:identities]
    end

    test "a client that says DRAIN and no more is remembered" do
      begin_engine(storage: true)
      sender = client("web")
      sender.sends("q", "1", sequence: 1, level: WRITTEN)
      sender.say(Wire.drain)
      sender.vanishes
      crash
      client("web")
      assert_equal 1, @welcome.low
    end

    test "the messages of an identity that was forgotten stay, and so does its queue" do
      begin_engine(storage: true)
      sender = client("made-up")
      sender.sends("q", "sent", sequence: 1, level: WRITTEN)
      client.sends("made-up", "received", kind: 1, level: WRITTEN)
      sender.say(Wire.forget)
      sender.vanishes
      crash
      assert_equal %w[sent], client.receives("q").payloads
      assert_equal %w[received], client("made-up").receives("", kind: 1).payloads
    end

    test "with as many as may be, the one that was seen least recently goes for a new one that numbers a message" do
      begin_engine(storage: true, max_identities: 3)
      %w[a b c].each { |identity| sends_as(identity, level: WRITTEN) }
      sends_as("a", level: WRITTEN)
      50.times { |number| client("reader-#{number}").vanishes }
      assert_equal [%w[b c a], 0], [listed, stats[:identities_evicted]]
      sends_as("d", level: MEMORY)
      assert_equal [%w[c a d], 1], [listed, stats[:identities_evicted]]
      client("b")
      assert_equal 0, @welcome.low
      crash
      assert_equal %w[c a], listed
      client("a")
      assert_equal 2, @welcome.low
    end

    test "with as many as may be, all connected, a new one is refused, and known ones are not" do
      begin_engine(storage: true, max_identities: 2)
      waiting = client("waiting")
      one, other = %w[one other].map { |identity| client(identity).tap { |each| assert_taken each.sends("q", "1", sequence: 1) } }
      refused = connect.say(Wire.hello(identity: "new", epoch: 1))
      assert_ended refused, Code::LIMIT
      assert_refused Code::LIMIT, waiting.sends("q", "1", sequence: 1)
      ack = assert_taken waiting.sends_all("q", %w[1 2], sequence: 1)
      assert_equal [0, [Code::LIMIT] * 2], [ack.count, ack.refusals.map(&:code)]
      assert_taken waiting.sends("q", "not numbered")
      assert_taken client.sends("q", "of nobody")
      assert_taken one.sends("q", "2", sequence: 2)
      other.vanishes
      assert_taken waiting.sends("q", "1", sequence: 1)
      assert_equal %w[one waiting], listed.sort
      assert_taken one.sends("q", "3", sequence: 3)
    end

    test "who comes back is not refused, though there are as many as may be" do
      begin_engine(storage: true, max_identities: 1)
      sends_as("web")
      3.times { client("reader #{_1}") }
      sender = client("web")
      assert_equal 1, @welcome.low
      assert_taken sender.sends("q", "2", sequence: 2)
      assert_equal 1, stats[:identities]
    end

    test "more than there may be are read from the journal, and those seen least recently are not kept" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      30.times { |number| sends_as("client-#{number}", level: WRITTEN) }
      sends_as("client-0", level: WRITTEN)
      restart(max_identities: 3)
      3.times do
        assert_equal %w[client-28 client-29 client-0], listed
        crash
      end
      sender = client("client-0")
      assert_equal 2, @welcome.low
      assert_taken sender.sends("q", "x", sequence: 3, level: WRITTEN)
    end

    test "small segments hold fewer, and take messages however many identities come and go" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      200.times { |number| sends_as(format("%0255d", number), level: WRITTEN) }
      assert_operator stats[:identities], :<=, 40
      big = "x" * (SEGMENT / 4)
      3.times do
        assert_settled client, payload: big, level: WRITTEN
        crash
      end
      assert_operator stats[:identities], :<=, 40
    end

    test "maps at their longest fit, too" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      remember_at_their_longest(41)
      20.times do
        assert_settled client, payload: "x" * 20_000, level: WRITTEN
      end
      crash
      client("40".rjust(255, "0"))
      assert_equal [0, 40], [@welcome.low, stats[:identities]]
    end

    test "many messages are freed at once beside maps at their longest" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      remember_at_their_longest(40)
      2.times do
        sender, reader = client, client.receives("q", credit: 10_000)
        10.times do |number|
          sender.say(Wire.send_batch(id: 7000 + number, to: "q", messages: [["", "x"]] * 500))
          settle
          assert_equal 500, assert_taken(sender.answer(7000 + number)).count
        end
        reader.say(Wire.free(id: 7000, first: 0, last: reader.pushes.last.id))
        settle
        assert_operator assert_taken(reader.answer(7000)).count, :>=, 5000
        crash
        assert_equal 0, stats[:messages]
      end
    end

    test "a message that no longer fits beside the identities stays where it is, and nothing else is the worse for it" do
      begin_engine(storage: true, segment_bytes: SEGMENT, max_identities: 1)
      assert_settled client, payload: "large".ljust(54_000), level: WRITTEN
      restart(max_identities: 40)
      remember_at_their_longest(40)
      reader = client.receives("busy")
      100.times do |number|
        assert_settled client, payload: "small", level: WRITTEN if number % 10 == 0
        assert_settled client, to: "busy", payload: "x" * 5000, level: WRITTEN
        reader.pushes.each { |push| reader.frees(push) }
        wait(0.2)
      end
      crash
      reader = client.receives("q")
      pushes = reader.pushes
      assert_equal [54_000, 10], [pushes.map { |push| push.payload.bytesize }.max, pushes.count { |push| push.payload == "small" }]
      pushes.each { |push| reader.frees(push) unless push.payload == "small" }
      10.times do
        wait(1.1)
        settle
      end
      assert_operator stats[:journal][:segments], :<=, 4
    end

    test "more identities than fit into a segment cannot be asked for" do
      error = assert_raises(ArgumentError) { begin_engine(storage: true, segment_bytes: SEGMENT, max_identities: 41) }
      assert_match(/max_identities is 41, but half a segment holds 40: .*segment_bytes/, error.message)
      begin_engine(storage: true, segment_bytes: SEGMENT, max_identities: 40)
      begin_engine(max_identities: 1_000_000)
    end

    test "identities are listed, and dropped when nobody is connected" do
      begin_engine(storage: true)
      sends_as("idle", level: WRITTEN)
      sends_as("idler", level: WRITTEN)
      wait(2)
      connected = client("web", epoch: 77)
      2.times { |number| connected.sends("q", "x", sequence: number + 1, level: WRITTEN) }
      client("reader")
      asking = client
      rows = asking.queries(IDENTITIES)[:identities]
      assert_equal [["idle", false, 2000, 1], ["idler", false, 2000, 1], ["web", true, 0, 2]], rows.map { |row| row.values_at(:identity, :connected, :idle_ms, :low) }
      assert_equal [77, %i[identity connected idle_ms epoch low]], [rows.last[:epoch], rows.last.keys]
      assert_equal %w[idle idler], listed(name: "idl")
      assert_equal %w[idle], listed(limit: 1)
      assert_refused Code::INVALID, asking.queries(DROP_IDENTITY, name: "web")
      assert_refused Code::INVALID, asking.queries(DROP_IDENTITY, name: "reader")
      assert_equal({count: 0}, asking.queries(DROP_IDENTITY, name: "nobody"))
      assert_equal({count: 0}, asking.queries(DROP_IDENTITY))
      assert_equal({count: 1}, asking.queries(DROP_IDENTITY, name: "idle"))
      assert_equal %w[idler web], listed
      crash
      assert_equal %w[idler web], listed
      client("idle")
      assert_equal 0, @welcome.low
    end

    test "a list of identities is cut to what its client takes" do
      100.times { |number| sends_as(format("%0200d", number)) }
      assert_includes 10..18, client(max_frame: 4096).queries(IDENTITIES)[:identities].size
    end

    test "identities are for who may manage all" do
      begin_engine(open: false)
      manager, other = [["*", 4]], [["a*", 7]]
      some = permitted(other)
      [IDENTITIES, DROP_IDENTITY].each { |what| assert_refused Code::FORBIDDEN, some.queries(what, name: "a") }
      assert_equal({identities: []}, permitted(manager).queries(IDENTITIES))
      assert_equal({count: 0}, permitted(manager).queries(DROP_IDENTITY, name: "a"))
    end

    test "a message that was copied says no number of a sender that another may have later" do
      begin_engine(storage: true, segment_bytes: SEGMENT)
      sender = client("made-up")
      sender.sends("old", "straggler", sequence: 1, level: WRITTEN)
      sender.say(Wire.forget)
      sender.vanishes
      send_and_free(client, client.receives("q"), 200)
      crash
      newer = client("newer")
      newer.sends("other", "x", sequence: 2, level: WRITTEN)
      send_and_free(client, client.receives("q"), 400, leaving: "left")
      assert_operator stats[:copied], :>=, 1
      crash
      newer = client("newer")
      refute newer.sends("other", "x", sequence: 1, level: WRITTEN).duplicate?
    end
  end
end
