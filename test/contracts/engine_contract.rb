# frozen_string_literal: true

require "hikyaku/hub"

# What every hub engine must do. Including tests define `new_engine(**options)`.
#
# The driver here is a test: it takes what is ready and gives it to readers that accept as many bytes as the test says.
module EngineContract
  HUB_URL = "https://hub.example.com/.well-known/mercure"

  # A client that accepts bytes, all of them unless told otherwise.
  class Reader
    attr_reader :received
    attr_accessor :room

    def initialize(room: nil)
      @room = room
      @received = +""
    end

    def accept(bytes)
      count = room ? [room, bytes.bytesize].min : bytes.bytesize
      @received << bytes.byteslice(0, count)
      @room -= count if room
      count
    end

    # Events as arrays of [id, type, data].
    def events
      @received.split("\n\n").filter_map do |block|
        fields = block.split("\n").filter_map { |line| line.match(/\A(\w+): (.*)\z/)&.captures }
        next if fields.none? { |name, _| name == "data" }
        [fields.assoc("id")&.last, fields.assoc("event")&.last, fields.filter_map { |name, value| value if name == "data" }.join("\n")]
      end
    end

    def data = events.map(&:last)

    def ids = events.map(&:first)
  end

  def setup
    super
    @now = 1000.0
    @topics = Hikyaku::Hub::Topics.new(hub_url: HUB_URL)
    @engine = new_engine
  end

  def exact(*patterns) = patterns.map { |pattern| Hikyaku::Hub::Matcher.build(type: "exact", pattern: pattern, base: HUB_URL) }

  def pattern(*patterns) = patterns.map { |pattern| Hikyaku::Hub::Matcher.build(type: "urlpattern", pattern: pattern, base: HUB_URL) }

  # A reader of private updates on these topics.
  Reads = Struct.new(:topics) do
    def subscribe?(topic) = topics.include?(topic.value)
  end

  def grant(matchers, reads: nil, **options)
    Hikyaku::Hub::Grant.new(matchers: Array(matchers), reader: reads && Reads.new(reads), **options)
  end

  def publish(topics, data = "x", **options)
    update = Hikyaku::Hub::Update.new(topics: topics, data: data, **options)
    @engine.publish(update, topics: update.topics.map { |topic| @topics[topic] }, now: @now)
  end

  def subscribe(matchers, room: nil, reads: nil, **options)
    subscriber = @engine.subscribe(grant(matchers, reads: reads), now: @now, **options)
    subscriber.connection = Reader.new(room: room)
    @engine.writable(subscriber)
    subscriber
  end

  # Drives until nobody is ready; returns those that had to be closed.
  def drain(max_bytes: 65_536)
    closed = []
    steps = 0
    loop do
      flunk "the engine never rests" if (steps += 1) > 10_000
      more = @engine.serve(7, max_bytes, now: @now) do |subscriber, bytes|
        next subscriber.connection.accept(bytes) if bytes
        closed << subscriber
        0
      end
      closed.each { |subscriber| @engine.unsubscribe(subscriber) }
      return closed unless more
    end
  end

  def received(subscriber)
    drain
    subscriber.connection.data
  end

  def self.included(base)
    base.extend(SentenceTests)
    base.class_eval do
      test "an update reaches whoever subscribes to its topic, and nobody else" do
        reader, other = subscribe(exact("/a")), subscribe(exact("/b"))
        publish("/a", "one")
        assert_equal ["one"], received(reader)
        assert_empty received(other)
      end

      test "an update with alternates reaches their subscribers, each once (draft-08, Publication)" do
        both, alternate = subscribe(exact("/a", "/b")), subscribe(exact("/b"))
        publish(["/a", "/b"], "one")
        assert_equal ["one"], received(both)
        assert_equal ["one"], received(alternate)
      end

      test "the wildcard selects everything (draft-08, Matcher Types)" do
        reader = subscribe(exact("*"))
        publish("/a", "one")
        publish("https://example.com/b", "two")
        assert_equal %w[one two], received(reader)
      end

      test "matchers of different types that say the same do not disturb each other" do
        template = ->(text) { Hikyaku::Hub::Matcher.build(type: "uri_template", pattern: text, base: HUB_URL) }
        %w[/a *].each do |text|
          readers = [exact(text), pattern(text), [template.call(text)]].map { |matchers| subscribe(matchers) }
          until readers.empty?
            publish("/a", readers.size.to_s)
            readers.each { |reader| assert_equal readers.size.to_s, received(reader).last, text }
            @engine.unsubscribe(readers.delete_at(readers.size / 2))
          end
        end
      end

      test "URL patterns select by structure" do
        reader = subscribe(pattern("https://example.com/books/:id"))
        publish("https://example.com/books/1", "one")
        publish("https://example.com/films/1", "two")
        publish("https://example.com/books/1/pages", "three")
        assert_equal ["one"], received(reader)
      end

      test "updates of several matchers arrive in the order of publishing, each once" do
        reader = subscribe(exact("/a", "/b", "/c") + pattern("/:any"))
        sent = %w[/c /a /b /a /c /c /b].each_with_index.map { |topic, i| publish(topic, i.to_s) && i.to_s }
        assert_equal sent, received(reader)
      end

      test "the id that publish returns is the one that readers see" do
        reader = subscribe(exact("/a"))
        ids = [publish("/a"), publish("/a", id: "urn:own"), publish("/a")]
        drain
        assert_equal ids, reader.connection.ids
        assert_equal "urn:own", ids[1]
        assert_match(/\A#[\w-]{11}\z/, ids[0])
        refute_equal ids[0], ids[2]
      end

      test "private updates reach only those whose grant covers one of the topics (draft-08, Subscribers)" do
        granted, alternate, stranger = subscribe(exact("/a"), reads: ["/a"]), subscribe(exact("/a"), reads: ["/users/1"]), subscribe(exact("/a"))
        publish("/a", "public")
        publish(["/a", "/users/1"], "secret", private: true)
        publish("/a", "later")
        assert_equal %w[public secret later], received(granted)
        assert_equal %w[public secret later], received(alternate)
        assert_equal %w[public later], received(stranger)
      end

      test "a private update that comes alone is kept from those it is not for" do
        granted, stranger = subscribe(exact("/a"), reads: ["/a"]), subscribe(exact("/a"))
        publish("/a", "secret", private: true)
        assert_equal ["secret"], received(granted)
        assert_empty received(stranger)
        publish("/a", "public")
        assert_equal ["public"], received(stranger)
      end

      test "a reader that comes back gets what it missed, once, in order (draft-08, Reconnection)" do
        publish("/a", "before")
        seen = publish("/a", "seen")
        publish("/b", "other")
        publish("/a", "missed 1")
        publish("/a", "missed 2")
        reader = subscribe(exact("/a"), last_event_id: seen)
        publish("/a", "live")
        assert_equal seen, reader.last_event_id
        assert_equal ["missed 1", "missed 2", "live"], received(reader)
      end

      test "earliest gives everything that is retained, and only for the matchers" do
        publish("/a", "1")
        publish("/b", "2")
        publish("/a", "3")
        reader = subscribe(exact("/a"), last_event_id: "earliest")
        assert_equal "earliest", reader.last_event_id
        assert_equal %w[1 3], received(reader)
      end

      test "an unknown id is answered with earliest, told in-band, and everything retained follows" do
        publish("/a", "1")
        reader = subscribe(exact("/a"), last_event_id: "urn:never")
        assert_equal "earliest", reader.last_event_id
        drain
        gap, *rest = reader.connection.events
        assert_equal "mercure", gap[1]
        assert_equal({"type" => "gap", "reason" => "unknown", "last_event_id" => "urn:never"}, JSON.parse(gap[2]))
        assert_equal ["1"], rest.map(&:last)
      end

      test "the id of a gap event is a cursor like any other" do
        reader = subscribe(exact("/a"), last_event_id: "urn:never")
        drain
        id = reader.connection.ids.first
        publish("/a", "1")
        again = subscribe(exact("/a"), last_event_id: id)
        assert_equal id, again.last_event_id
        assert_equal ["1"], received(again)
      end

      test "an id of another log is unknown" do
        other = new_engine
        update = Hikyaku::Hub::Update.new(topics: "/a", data: "x")
        foreign = other.publish(update, topics: [@topics["/a"]], now: @now)
        publish("/a")
        assert_equal "earliest", subscribe(exact("/a"), last_event_id: foreign).last_event_id
      end

      test "a reused id stands for its first event; the later one is replayed (draft-08, Reconnection)" do
        publish("/a", "1", id: "same")
        publish("/a", "2")
        publish("/a", "3", id: "same")
        assert_equal %w[2 3], received(subscribe(exact("/a"), last_event_id: "same"))
      end

      test "without a cursor a reader gets only what comes after it" do
        publish("/a", "before")
        reader = subscribe(exact("/a"))
        assert_nil reader.last_event_id
        publish("/a", "after")
        assert_equal ["after"], received(reader)
      end

      test "an empty cursor is answered with where the stream begins, without telling of private events" do
        assert_equal "earliest", subscribe(exact("/a"), last_event_id: "").last_event_id
        id = publish("/a", "public")
        assert_equal id, subscribe(exact("/a"), last_event_id: "").last_event_id
        secret = publish("/a", "secret", private: true, id: "urn:secret")
        answer = subscribe(exact("/a"), last_event_id: "").last_event_id
        refute_equal secret, answer
        publish("/a", "next")
        assert_equal ["next"], received(subscribe(exact("/a"), last_event_id: answer))
      end

      test "replay is authorised by the grant of now (draft-08, Authorization on Event Replay)" do
        publish("/a", "secret", private: true)
        publish("/a", "public")
        assert_equal ["public"], received(subscribe(exact("/a"), last_event_id: "earliest"))
        assert_equal %w[secret public], received(subscribe(exact("/a"), last_event_id: "earliest", reads: ["/a"]))
      end

      test "what a socket does not take goes out later, from the byte where it stopped" do
        reader = subscribe(exact("/a"), room: 5)
        publish("/a", "one")
        publish("/a", "two")
        drain
        assert_equal 5, reader.connection.received.bytesize
        reader.connection.room = 31
        @engine.writable(reader)
        drain
        reader.connection.room = nil
        @engine.writable(reader)
        publish("/a", "three")
        assert_equal %w[one two three], received(reader)
      end

      test "a reader may stop at any byte and loses or repeats nothing" do
        whole = subscribe(exact("/a") + pattern("/b/:id"))
        publish("/a", "first", id: "urn:1", type: "note", retry_after: 5)
        publish("/b/1", "two\nlines")
        publish("/a", "last")
        drain
        expected = whole.connection.received
        (1...expected.bytesize).each do |cut|
          reader = subscribe(exact("/a") + pattern("/b/:id"), last_event_id: "earliest", room: cut)
          drain
          reader.connection.room = nil
          @engine.writable(reader)
          drain
          assert_equal expected, reader.connection.received, "stopped after #{cut} bytes"
          @engine.unsubscribe(reader)
        end
      end

      test "a blocked reader harms nobody" do
        slow, fast = subscribe(exact("/a"), room: 0), subscribe(exact("/a"))
        50.times { |i| publish("/a", i.to_s) }
        assert_equal 50, received(fast).size
        slow.connection.room = nil
        @engine.writable(slow)
        assert_equal fast.connection.data, received(slow)
      end

      test "a reader that the history has passed is told in-band and moved on" do
        @engine = new_engine(history: 10_000)
        reader = subscribe(exact("/a"), room: 0)
        ids = 100.times.map { |i| publish("/a", i.to_s * 10) }
        drain
        reader.connection.room = nil
        @engine.writable(reader)
        drain
        gap, *rest = reader.connection.events
        document = JSON.parse(gap[2])
        assert_equal ["mercure", "gap", "overrun"], [gap[1], document["type"], document["reason"]]
        assert_equal [{"match" => "/a", "match_type" => "exact"}], document["matches"]
        assert_equal ids.last(rest.size), rest.map(&:first)
        assert_operator rest.size, :<, 100
        assert_operator rest.size, :>, 0
      end

      test "a reader that asked for all that is retained begins where the history begins when it is served" do
        @engine = new_engine(history: 10_000)
        20.times { |i| publish("/a", i.to_s * 10) }
        everything = subscribe(exact("/a"), last_event_id: "earliest")
        lost = subscribe(exact("/a"), last_event_id: "urn:unknown")
        5.times { |i| publish("/a", "later #{i}") }
        data = received(everything)
        assert_equal "later 4", data.last
        assert_empty everything.connection.events.map { |event| event[1] }.compact, "nothing is missing of what it asked for"
        assert_equal [%w[gap unknown]], lost.connection.events.filter_map { |event| JSON.parse(event[2]).values_at("type", "reason") if event[1] }
        assert_equal data, lost.connection.data.drop(1)
      end

      test "a gap is told behind what is already on its way, however little of that was written" do
        @engine = new_engine(history: 10_000)
        reader = subscribe(exact("/a"), room: 0)
        publish("/a", "first")
        drain
        2.times do |round|
          100.times { |i| publish("/a", i.to_s * 10) }
          reader.connection.room = (round == 0) ? 25 : nil
          @engine.writable(reader)
          drain
        end
        gaps = reader.connection.events.select { |event| event[1] == "mercure" }
        assert_equal %w[overrun overrun], gaps.map { |event| JSON.parse(event[2])["reason"] }
        assert reader.connection.received.start_with?("event: mercure\nid: #{gaps.first.first}\ndata: {")
      end

      test "a reader that the history has passed is closed where the policy says so" do
        @engine = new_engine(history: 10_000, gap_policy: ->(matcher) { (matcher.pattern == "/a") ? :close : :gap })
        closed, moved = subscribe(exact("/a"), room: 0), subscribe(exact("/b"), room: 0)
        publish(["/a", "/b"])
        drain
        100.times { |i| publish(["/a", "/b"], i.to_s * 10) }
        drain
        [closed, moved].each do |reader|
          reader.connection.room = nil
          @engine.writable(reader)
        end
        assert_equal [closed], drain
        assert_empty closed.connection.events
        assert_equal "mercure", moved.connection.events.first[1]
      end

      test "a reader that the history passes in the middle of an event gets the rest of it, and is then told" do
        @engine = new_engine(history: 10_000)
        [7, 30].each do |room|
          reader = subscribe(exact("/a"), room: room)
          publish("/a", "0" * 10)
          drain
          assert_equal room, reader.connection.received.bytesize
          reader.connection.room = nil
          100.times { |i| publish("/a", i.to_s * 10) }
          @engine.writable(reader)
          assert_empty drain
          first, gap, *rest = reader.connection.events
          assert_equal "0" * 10, first.last
          assert_equal "overrun", JSON.parse(gap[2])["reason"]
          assert_equal "99" * 10, rest.last.last
          @engine.unsubscribe(reader)
        end
      end

      test "of an event larger than what is kept for a slow reader the rest is lost, and the stream is closed, not resumed" do
        @engine = new_engine(history: 300_000)
        reader = subscribe(exact("/a"), room: 7)
        publish("/a", "0" * 200_000)
        drain
        10.times { publish("/a", "x" * 200_000) }
        reader.connection.room = nil
        @engine.writable(reader)
        assert_equal [reader], drain
        assert_equal 7, reader.connection.received.bytesize
      end

      test "a reader that missed nothing of its own is not told of a gap, however far the others' history went" do
        @engine = new_engine(history: 10_000)
        reader = subscribe(exact("/quiet"))
        200.times { |i| publish("/loud", i.to_s * 10) }
        publish("/quiet", "hello")
        assert_equal ["hello"], received(reader)
      end

      test "memory does not grow with readers times messages" do
        @engine = new_engine(history: 20_000)
        20.times { subscribe(exact("/a"), room: 0) }
        500.times { |i| publish("/a", i.to_s * 10) }
        drain
        assert_operator @engine.stats[:history_bytes], :<=, 20_000
        assert_operator @engine.stats[:history_updates], :<, 100
      end

      test "a large event arrives whole" do
        reader = subscribe(exact("/a"))
        publish("/a", "small")
        publish("/a", "L" * 200_000)
        publish("/a", "small again")
        drain(max_bytes: 1000)
        assert_equal ["small", "L" * 200_000, "small again"], reader.connection.data
      end

      test "a long history comes in portions, and live updates behind it" do
        sent = 3000.times.map { |i| publish((i % 3 == 0) ? "/a" : "/b", i.to_s) && i }.select { |i| i % 3 == 0 }.map(&:to_s)
        reader = subscribe(exact("/a"), last_event_id: "earliest")
        publish("/a", "live")
        drain(max_bytes: 2000)
        assert_equal sent + ["live"], reader.connection.data
      end

      test "a feed forgets its oldest positions and whoever is behind still gets everything" do
        reader = subscribe(exact("*"), room: 0)
        sent = 2500.times.map { |i| publish("/a", i.to_s) && i.to_s }
        drain
        reader.connection.room = nil
        @engine.writable(reader)
        assert_equal sent, received(reader)
      end

      test "who has left receives nothing" do
        reader = subscribe(exact("/a"))
        assert @engine.unsubscribe(reader)
        refute @engine.unsubscribe(reader)
        publish("/a")
        assert_empty received(reader)
        assert_equal 0, @engine.stats[:subscribers]
        assert_equal 0, @engine.stats[:feeds]
      end

      test "leaving in the middle of a fan-out leaves nobody out" do
        readers = 50.times.map { subscribe(exact("/a")) }
        publish("/a", "one")
        taken = 0
        while (subscriber = @engine.next_ready)
          next unless (bytes = @engine.take(subscriber, 65_536))
          @engine.wrote(subscriber, subscriber.connection.accept(bytes), now: @now)
          taken += 1
          @engine.unsubscribe(readers[taken / 3]) if (taken % 3).zero?
        end
        remaining = readers.reject(&:closed)
        assert_operator remaining.size, :>, 20
        assert(remaining.all? { |reader| reader.connection.data == ["one"] })
      end

      test "who subscribes during a fan-out gets only what is published afterwards" do
        10.times { subscribe(exact("/a")) }
        publish("/a", "one")
        @engine.next_ready.tap { |subscriber| @engine.take(subscriber, 100).then { |bytes| @engine.wrote(subscriber, bytes.bytesize, now: @now) } }
        late = subscribe(exact("/a"))
        publish("/a", "two")
        assert_equal ["two"], received(late)
      end

      test "many publishes between two turns become one write each" do
        reader = subscribe(exact("/a"))
        drain
        10.times { |i| publish("/a", i.to_s) }
        writes = 0
        while (subscriber = @engine.next_ready)
          next unless (bytes = @engine.take(subscriber, 65_536))
          writes += 1
          @engine.wrote(subscriber, subscriber.connection.accept(bytes), now: @now)
        end
        assert_equal 1, writes
        assert_equal 10, reader.connection.data.size
      end

      test "a silent stream gets a comment, a busy one does not" do
        @engine = new_engine(heartbeat: 10)
        quiet, busy = subscribe(exact("/quiet")), subscribe(exact("/busy"))
        drain
        24.times do
          @now += 0.5
          publish("/busy")
          @engine.tick(now: @now)
          drain
        end
        assert_equal ":\n\n", quiet.connection.received
        refute_includes busy.connection.received, ":\n\n"
      end

      test "a stream ends before its grant does (draft-08, Subscribers)" do
        reader = subscribe(exact("/a"), expires_in: 5)
        @now += 4.5
        @engine.tick(now: @now)
        assert_empty drain
        assert_operator @engine.next_tick, :<=, 1005
        @now = 1004.95
        @engine.tick(now: @now)
        assert_equal [reader], drain
        assert_equal :expired, reader.closing
      end

      test "a stream ends after the longest lifetime, some a little earlier (draft-08, Subscribers)" do
        @engine = new_engine(max_lifetime: 100)
        reader = subscribe(exact("/a"))
        @now += 89
        @engine.tick(now: @now)
        assert_empty drain
        @now += 11.1
        @engine.tick(now: @now)
        assert_equal [reader], drain
        assert_equal :lifetime, reader.closing
      end

      test "what is told without being kept reaches the exact subscribers and leaves no trace" do
        reader, all = subscribe(exact("/figures")), subscribe(exact("*"))
        drain
        @engine.notify("/figures", "data: 1\n\n")
        drain
        assert_equal "data: 1\n\n", reader.connection.received
        assert_empty all.connection.received
        assert_equal 0, @engine.stats[:history_updates]
        publish("/figures", "kept")
        assert_equal %w[1 kept], received(reader)
      end

      test "a publish looks only at the subscribers that it concerns" do
        looked_at = 0
        matchers = 200.times.map { |i| exact("/topic/#{i}") }
        matchers.each { |matcher| subscribe(matcher) }
        drain
        publish("/topic/7", "one")
        while (subscriber = @engine.next_ready)
          looked_at += 1
          bytes = @engine.take(subscriber, 1000)
          @engine.wrote(subscriber, subscriber.connection.accept(bytes), now: @now)
        end
        assert_equal 1, looked_at
      end

      test "subscriptions are listed while they last" do
        reader = subscribe(exact("/a", "/b"))
        subscribe(pattern("/:x"))
        assert_equal 3, listed.size
        assert_equal [reader.id], listed(type: "exact", pattern: "/a").map { |subscription| subscription.subscriber.id }
        @engine.unsubscribe(reader)
        assert_equal ["/:x"], listed.map { |subscription| subscription.matcher.pattern }
      end

      test "random publishing, reading, blocking and leaving: everyone gets exactly its own, in order" do
        random = Random.new(20_261_121)
        @engine = new_engine(history: 100_000_000)
        topics = %w[/a /b /c /d/1 /d/2]
        readers = []
        log = []
        400.times do
          case random.rand(10)
          when 0..4
            chosen = topics.sample(1 + random.rand(2), random: random)
            secret = random.rand(4).zero?
            publish(chosen, log.size.to_s, private: secret)
            log << [chosen, secret]
          when 5
            wanted = topics.sample(1 + random.rand(2), random: random)
            reads = random.rand(2).zero? ? [topics.sample(random: random)] : nil
            reader = subscribe(exact(*wanted), room: random.rand(60), reads: reads)
            readers << [reader, wanted, reads || [], log.size]
          when 6..7
            reader, = readers.sample(random: random)
            next unless reader
            reader.connection.room = random.rand(200)
            @engine.writable(reader) if reader.blocked
          else drain(max_bytes: 1 + random.rand(300))
          end
        end
        readers.each { |reader, *| (reader.connection.room = nil) || @engine.writable(reader) }
        drain
        readers.each do |reader, wanted, reads, from|
          expected = log.each_with_index.drop(from).filter_map do |(chosen, secret), i|
            i.to_s if (chosen & wanted).any? && (!secret || (chosen & reads).any?)
          end
          assert_equal expected, reader.connection.data, "wanted #{wanted}, reads #{reads}, from #{from}, log #{log.first(4)}"
        end
      end
    end
  end

  def listed(**options)
    found = []
    @engine.each_subscription(**options) { |subscription| found << subscription }
    found
  end
end
