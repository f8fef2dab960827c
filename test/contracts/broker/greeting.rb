# frozen_string_literal: true

# HELLO, who may do what, and what ends a connection (docs/protocol.md, sections 2, 3 and 11).
module BrokerContract
  tests do
    test "HELLO is answered by what the broker has" do
      reader = connect
      welcome = reader.ask(:hello, id: 7, max_frame: 65_536)
      assert_kind_of Frames::Welcome, welcome
      assert_equal [7, 1, 1, 0, 0, 0, 0], [welcome.id, welcome.version, welcome.levels, welcome.level, welcome.features, welcome.heartbeat, welcome.low]
      assert_equal [1024 * 1024, 4096, 8 * 1024 * 1024], [welcome.max_frame, welcome.window_messages, welcome.window_bytes]
      begin_engine(storage: true)
      assert_equal [7, 1], connect.ask(:hello).then { |each| [each.levels, each.level] }
      begin_engine(storage: true, level: SYNCED, max_frame: 8192, window_messages: 10, window_bytes: 5000)
      welcome = connect.ask(:hello)
      assert_equal [2, 8192, 10, 5000], [welcome.level, welcome.max_frame, welcome.window_messages, welcome.window_bytes]
    end

    test "sessions have numbers, and deliveries are numbered from there" do
      one = client.receives("q")
      first = @welcome.session
      client
      assert_operator @welcome.session, :>, first
      one.say(Wire.send_message(to: "q", payload: "a"), Wire.send_message(to: "q", payload: "b"))
      assert_equal [(first << 36) + 1, (first << 36) + 2], one.pushes.map(&:id)
    end

    test "HELLO without an id is answered, too" do
      assert_equal 0, connect.ask(:hello, id: 0).id
    end

    test "features that are not known are not chosen" do
      assert_equal 0, connect.ask(:hello, features: 0xFFFF_FFFF).features
    end

    test "before HELLO was acknowledged nothing else is allowed" do
      stranger = connect
      stranger.say(Wire.ping(id: 1))
      assert_ended stranger, Code::UNEXPECTED
    end

    test "HELLO is said once" do
      reader = client
      reader.say(Wire.hello)
      assert_ended reader, Code::UNEXPECTED
    end

    test "a version is found, or the connection ends" do
      assert_equal 1, connect.ask(:hello, lowest: 1, highest: 9).version
      assert_equal 1, connect.ask(:hello, lowest: 0, highest: 1).version
      [[2, 3], [0, 0], [2, 1]].each do |lowest, highest|
        stranger = connect.say(Wire.hello(lowest: lowest, highest: highest))
        assert_ended stranger, Code::VERSION
      end
    end

    test "what is wrong with a HELLO ends the connection" do
      [{max_frame: 4095}, {authentication: 3}, {identity: "a\nb"}, {identity: "\xFF"}, {identity: "\x7F"}].each do |fields|
        stranger = connect.say(Wire.hello(**fields))
        assert_ended stranger, Code::INVALID
      end
    end

    test "what is malformed ends the connection, after what came before it was done" do
      vectors = JSON.parse(File.read(File.expand_path("../../vectors/protocol/malformed.json", __dir__)), symbolize_names: true)
      vectors.select { |vector| vector[:from] == "client" && vector[:max_frame] == 1024 * 1024 }.each do |vector|
        bad = client
        bad.say(Wire.send_message(to: "q", payload: "before"), [vector[:hex]].pack("H*"))
        assert_equal vector[:id], bad.frames.find { |frame| frame.is_a?(Frames::Error) }&.id, vector[:name]
        assert_ended bad, vector[:code]
      end
      assert_operator figures("q")[:ready], :>, 50
    end

    test "a frame that is larger than was agreed on ends the connection" do
      begin_engine(max_frame: 4096)
      sender = client
      assert_taken sender.sends("q" * 8, "x" * (4096 - 48))
      sender.say(Wire.send_message(to: "q", payload: "x" * (4096 - 40)))
      assert_ended sender, Code::TOO_BIG
    end

    test "bytes may come in any portions" do
      frames = [Wire.hello, Wire.subscribe(id: 2, subscription: 1, name: "q", credit: 10), Wire.send_message(id: 3, to: "q", payload: "hello" * 20),
        Wire.send_batch(id: 4, to: "q", messages: [["", "a"], ["", "b"]])].join
      [1, 3, 16, 50, 1000].each do |by|
        split = connect
        frames.scan(/.{1,#{by}}/mn) { |part| split.say(part) }
        assert_equal ["hello" * 20, "a", "b"], split.payloads
        assert_equal [1, 2, 3, 4], split.frames.map(&:id)
        split.vanishes
        @engine.queues(wall: @wall).each { |queue| client.queries(PURGE, name: queue[:name]) }
      end
    end

    test "requests may be sent without waiting for answers" do
      both = connect
      both.say(Wire.hello(id: 1), Wire.subscribe(id: 2, subscription: 1, name: "q", credit: 10), Wire.send_message(id: 3, to: "q", payload: "a"), Wire.ping(id: 4))
      assert_equal ["a"], both.payloads
      assert_equal [1, 2, 3, 4], both.frames.map(&:id).sort
    end

    test "PING is answered, unless it has no id" do
      reader = client
      assert_equal Frames::Receipt.new(9), reader.ask(:ping, id: 9)
      reader.say(Wire.ping)
      assert_empty reader.frames
    end

    test "a request without an id is answered only if it fails" do
      reader = client
      reader.say(Wire.subscribe(subscription: 1, name: "q", credit: 9), Wire.send_message(to: "q", payload: "a"), Wire.credit(subscription: 1, credit: 10))
      push = reader.pushes.first
      reader.say(Wire.touch(first: push.id), Wire.nack(delivery: push.id))
      reader.say(Wire.free(first: reader.pushes.first.id), Wire.unsubscribe(subscription: 1))
      assert_empty reader.frames
      reader.say(Wire.unsubscribe(subscription: 1))
      assert_equal [0, Code::NO_SUCH_SUBSCRIPTION], reader.frames.first.then { |frame| [frame.id, frame.code] }
    end

    test "an identity has one connection: that with the highest epoch" do
      older = client("web", epoch: 5)
      newer = client("web", epoch: 6)
      assert_kind_of Frames::Welcome, @welcome
      assert_ended older, Code::FENCED
      [6, 5, 0].each do |epoch|
        late = connect.say(Wire.hello(identity: "web", epoch: epoch))
        assert_equal [6], late.frames.map(&:delivery)
        assert_ended late, Code::FENCED
      end
      assert_taken newer.sends("q", "still here", sequence: 1)
      newer.vanishes
      assert_ended connect.say(Wire.hello(identity: "web", epoch: 6)), Code::FENCED
      client("web", epoch: 7)
      assert_kind_of Frames::Welcome, @welcome
    end

    test "those without an identity are many" do
      assert_taken client.sends("q", "a")
      assert_taken client.sends("q", "b")
      assert_equal 2, stats[:sessions]
    end

    test "a client that is fenced gives back what it had" do
      older = client("web", epoch: 1).receives("q", credit: 1)
      client.sends("q", "a")
      assert_equal ["a"], older.payloads
      newer = client("web", epoch: 2).receives("q")
      assert_equal ["a"], newer.payloads
    end

    test "who is not open to all is decided by whoever asks for it, once" do
      begin_engine(open: false)
      stranger = connect(address: "192.0.2.9").say(Wire.hello(id: 4, identity: "web", epoch: 1, authentication: 2, credentials: "secret", agent: "test/1"))
      hello = @engine.next_auth_request
      assert_equal ["web", "secret", 2, "test/1", "192.0.2.9"], [hello.identity, hello.credentials, hello.kind, hello.agent, hello.address]
      refute_match(/secret/, hello.inspect)
      assert_nil @engine.next_auth_request
      assert_nil stranger.answer(4)
      assert @engine.permit(hello.serial, [Permission.all], now: @now, wall: @wall)
      turn
      assert_kind_of Frames::Welcome, stranger.answer(4)
      refute @engine.permit(hello.serial, [], now: @now, wall: @wall)
      refute @engine.refuse(hello.serial, "no")
    end

    test "each who asks is told of once, whoever else still waits for a decision" do
      begin_engine(open: false)
      first = connect.say(Wire.hello(id: 1, identity: "first", epoch: 1))
      hellos = [@engine.next_auth_request]
      others = Array.new(3) { |number| connect.say(Wire.hello(id: 1, identity: "other #{number}", epoch: 1)) }
      while (hello = @engine.next_auth_request)
        hellos << hello
      end
      assert_equal ["first", "other 0", "other 1", "other 2"], hellos.map(&:identity)
      hellos.reverse_each { |each| assert @engine.permit(each.serial, [Permission.all], now: @now, wall: @wall) }
      turn
      [first, *others].each { |each| assert_kind_of Frames::Welcome, each.answer(1) }
    end

    test "who is refused is told why, and the connection ends" do
      begin_engine(open: false)
      stranger = connect.say(Wire.hello(id: 4, credentials: "wrong", authentication: 1))
      assert @engine.refuse(@engine.next_auth_request.serial, "this is not the secret")
      turn
      assert_equal "this is not the secret", stranger.frames.first.sentence
      assert_ended stranger, Code::UNAUTHORIZED
      hasty = connect.say(Wire.hello, Wire.ping(id: 1))
      assert_ended hasty, Code::UNEXPECTED
      gone = connect.say(Wire.hello)
      gone.vanishes
      serials = [@engine.next_auth_request, @engine.next_auth_request].compact.map(&:serial)
      serials.each { |serial| refute @engine.permit(serial, [], now: @now, wall: @wall) }
    end

    test "an older connection is not fenced by who is not permitted" do
      begin_engine(open: false)
      older = permitted([["*", 7]], "web")
      stranger = connect.say(Wire.hello(identity: "web", epoch: 9))
      @engine.refuse(@engine.next_auth_request.serial, "no")
      turn
      assert_ended stranger, Code::UNAUTHORIZED
      assert_taken older.sends("q", "a")
    end

    def permitted(pairs, identity = "", until_ms: nil)
      each = connect.say(Wire.hello(identity: identity, epoch: next_epoch))
      permissions = pairs.map { |pattern, rights| Permission.new(pattern, rights) }
      @engine.permit(@engine.next_auth_request.serial, permissions, until_ms: until_ms, now: @now, wall: @wall)
      turn
      each.frames.clear
      each
    end

    test "permissions say who may send, receive and manage which queues" do
      begin_engine(open: false)
      some = permitted([["mails", 1], ["jobs/*", 2], ["@web", 1], ["jobs/a", 4]], "me")
      forbidden = Code::FORBIDDEN
      assert_taken some.sends("mails", "a")
      assert_refused forbidden, some.sends("mails2", "a")
      assert_refused forbidden, some.sends("jobs/a", "a")
      assert_refused forbidden, some.sends_all("jobs/a", %w[a b])
      assert_taken some.sends("web", "a", kind: 1)
      assert_refused forbidden, some.sends("other", "a", kind: 1)
      assert_taken some.ask(:subscribe, subscription: 1, name: "jobs/x")
      assert_refused forbidden, some.ask(:subscribe, subscription: 2, name: "mails")
      assert_taken some.ask(:subscribe, subscription: 3, name: "", kind: 1)
      assert_refused forbidden, some.queries(DEAD, name: "mails")
      assert_refused forbidden, some.queries(SESSIONS)
      assert_refused forbidden, some.queries(SEGMENTS)
      permitted([["*", 1]]).sends("jobs/a", "a")
      assert_equal({dead: []}, some.queries(DEAD, name: "jobs/a"))
      assert_equal ["jobs/a"], some.queries(QUEUES)[:queues].map { |queue| queue[:name] }
      assert_refused forbidden, permitted([["*", 3]]).queries(QUEUES)
    end

    test "a star is for all queues, of clients too" do
      begin_engine(open: false)
      all = permitted([["*", 1]])
      assert_taken all.sends("q", "a")
      assert_taken all.sends("web", "a", kind: 1)
    end

    test "when a token has expired the connection ends" do
      begin_engine(open: false)
      reader = permitted([["*", 7]], until_ms: @wall + 60_000)
      wait(59)
      assert_taken reader.sends("q", "a")
      wait(2)
      assert_ended reader, Code::UNAUTHORIZED
      stranger = connect.say(Wire.hello)
      @engine.permit(@engine.next_auth_request.serial, [Permission.all], until_ms: @wall - 1, now: @now, wall: @wall)
      turn
      assert_ended stranger, Code::UNAUTHORIZED
    end
  end
end
