# frozen_string_literal: true

require "test_helper"
require "hikyaku/hub"
require "hikyaku/hub/native_engine"

# Both engines are fed the same random sequence: whatever their readers receive is the same, byte for byte.
class EnginesDifferTest < Minitest::Test
  HUB_URL = "https://hub.example.com/.well-known/mercure"
  SEEDS = ENV.fetch("SEEDS", "1..6").then { |range| Range.new(*range.split("..").map(&:to_i)) }
  TOPICS = ["/a", "/a/1", "/books/1", "/books/2", "https://example.com/books/1", "https://EXAMPLE.com/books/%31", "https://example.com:443/books/2?x#y",
    "urn:isbn:1", "books", "//other.example/x", "https://bücher.example/é", "/.././a", "not a url\\", "/books/a b", "http://[::1]/x",
    "/.well-known/other"].freeze
  PATTERNS = ["/books/:id", "/a*", "https://example.com/books/:id", "https://*.example/*", "/:any", "*", "/books/(\\d+)", "/.well-known/mercure/subscriptions/*"].freeze
  TEMPLATES = ["/books/{id}", "{+any}", "https://example.com/{a}/{b}", "/a{/more*}", "/a"].freeze
  DATA = ["x", "", "two\nlines", "cr\rcrlf\r\nend\n", "é ü 漢", "L" * 700, "L" * 5_000].freeze

  # A client that accepts so many bytes, then none.
  Reader = Struct.new(:received, :room) do
    def accept(bytes)
      count = room ? [room, bytes.bytesize].min : bytes.bytesize
      received << bytes.byteslice(0, count).b
      self.room -= count if room
      count
    end
  end

  # One engine, and what its driver does.
  class Side
    attr_reader :readers, :closed, :engine

    def initialize(engine)
      @engine = engine
      @readers = []
      @closed = []
      @names = {}
    end

    def subscribe(grant, now, **options)
      subscriber = @engine.subscribe(grant, now: now, **options)
      subscriber.connection = Reader.new(+"".b, 0)
      @names[subscriber.id] = "subscriber #{@readers.size}"
      @readers << subscriber
      subscriber.last_event_id
    rescue Hikyaku::TooManyConnections => error
      error.message
    end

    def open(place, room)
      subscriber = @readers[place]
      subscriber.connection.room = room
      @engine.writable(subscriber) unless subscriber.closed
    end

    def unsubscribe(place, now) = @engine.unsubscribe(@readers[place], now: now)

    # Who has to be closed leaves in the order of coming, so that both announce it alike.
    def drain(max_bytes, now)
      loop do
        ending = []
        nil while @engine.serve(5, max_bytes, now: now) do |subscriber, bytes|
          next subscriber.connection.accept(bytes) if bytes
          ending << @readers.index(subscriber)
          0
        end
        return if ending.empty?
        ending.sort.each do |place|
          @closed << [place, @readers[place].closing]
          @engine.unsubscribe(@readers[place], now: now)
        end
      end
    end

    # What each reader has, the random ids of subscribers told by their places; one at the end may be cut off.
    def received
      ids = Regexp.union(@names.keys.flat_map { |id| [id.b, id.gsub(":", "%3A").b] })
      @readers.map do |reader|
        reader.connection.received.gsub(ids) { |id| @names[id.gsub("%3A", ":")] }.sub(/urn(?::|%3A)uuid(?::|%3A)[\h-]*\z/n, "")
      end
    end

    def figures
      @engine.stats.slice(:subscribers, :subscriptions, :feeds, :publishes, :history_bytes, :history_updates)
    end
  end

  def setup
    @topics = Hikyaku::Hub::Topics.new(hub_url: HUB_URL)
    @matchers = {}
  end

  def sides(**options)
    key = Random.bytes(16)
    [Hikyaku::Hub::RubyEngine.new(topics: @topics, cipher: Hikyaku::Log::PositionCipher.new(key: key), **options),
      Hikyaku::Hub::NativeEngine.new(topics: @topics, key: key, **options)].map { |engine| Side.new(engine) }
  end

  def matcher(random)
    type, pattern = [["exact", TOPICS], ["exact", ["*"]], ["urlpattern", PATTERNS], ["uri_template", TEMPLATES]]
      .sample(random: random).then { |kind, patterns| [kind, patterns.sample(random: random)] }
    @matchers[[type, pattern]] ||= Hikyaku::Hub::Matcher.build(type: type, pattern: pattern, base: HUB_URL)
  end

  def matchers(random, most) = Array.new(random.rand(1..most)) { matcher(random) }.uniq

  def grant(random)
    chosen = matchers(random, 4)
    payloads = chosen.map { [nil, {"user" => "é\"\\", "n" => 1}].sample(random: random) }
    Hikyaku::Hub::Grant.new(matchers: chosen, reads: random.rand(3).zero? ? [] : matchers(random, 3), payloads: payloads,
      subject: [nil, "alice", "bob"].sample(random: random))
  end

  def update(random, ids)
    own = "urn:#{random.rand(20)}" if random.rand(4).zero?
    ids << own if own
    Hikyaku::Hub::Update.new(topics: TOPICS.sample(random.rand(1..3), random: random), data: DATA.sample(random: random), id: own,
      private: random.rand(3).zero?, type: [nil, nil, "note"].sample(random: random), retry_after: [nil, nil, 1500].sample(random: random))
  end

  def cursor(random, ids)
    case random.rand(6)
    when 0..1 then nil
    when 2 then "earliest"
    when 3 then ["", "urn:never", "#AAAAAAAAAAA", "#short", "é"].sample(random: random)
    else ids.sample(random: random)
    end
  end

  # One step, done to both; returns what each answered.
  def step(random, both, ids, now, grants)
    case random.rand(20)
    when 0..7
      update = update(random, ids)
      topics = update.topics.map { |topic| @topics[topic] }
      both.map { |side| side.engine.publish(update, topics: topics, now: now) }.tap { |answers| ids << answers.first }
    when 8..10
      grants << grant(random) if grants.size < 3 || random.rand(3).zero?
      chosen = grants.sample(random: random)
      options = {last_event_id: cursor(random, ids), address: [nil, "192.0.2.1"].sample(random: random), expires_in: [nil, nil, 9.0].sample(random: random)}
      both.map { |side| side.subscribe(chosen, now, **options) }
    when 11..13
      place = random.rand(both.first.readers.size + 1)
      room = [nil, 0, random.rand(400), random.rand(4_000)].sample(random: random)
      both.map { |side| side.open(place, room) if side.readers[place] } && nil
    when 14
      place = random.rand(both.first.readers.size + 1)
      both.map { |side| side.unsubscribe(place, now) if side.readers[place] }
    when 15
      both.map { |side| [side.engine.last_event_id, side.engine.lag] }
    when 16
      both.map { |side| side.engine.tick(now: now) } && nil
    when 17
      asked = cursor(random, ids)
      asking = grants.sample(random: random) and both.map { |side| [side.engine.resolve(asked, asking), side.engine.cursor(asking)] }
    when 18
      topic = TOPICS.sample(random: random)
      both.map { |side| [side.engine.watched?(topic), side.engine.notify(topic, "data: now\n\n")] }
    else
      subject = %w[alice nobody].sample(random: random)
      random.rand(5).zero? ? both.map { |side| side.engine.disconnect(subject) } : nil
    end
  end

  def assert_same(both, message)
    ruby, native = both
    ruby.received.zip(native.received).each_with_index do |(expected, actual), place|
      assert expected == actual, -> { "#{message}, reader #{place}: #{difference(expected, actual)}" }
    end
    assert_equal ruby.closed.sort_by(&:to_s), native.closed.sort_by(&:to_s), message
    assert_equal ruby.figures, native.figures, message
  end

  def difference(expected, actual)
    at = (0..expected.bytesize).find { |i| expected.getbyte(i) != actual.getbyte(i) }
    "byte #{at} of #{expected.bytesize} and #{actual.bytesize}:\n#{expected.byteslice([at - 200, 0].max, 400).inspect}\n#{actual.byteslice([at - 200, 0].max, 400).inspect}"
  end

  SEEDS.each do |seed|
    test "what readers receive is the same with both engines, seed #{seed}" do
      random = Random.new(seed)
      documents = Hikyaku::Hub::SubscriptionDocument.new(@topics.hub_path) if seed.even?
      policy = ->(matcher) { matcher.pattern.include?("books") ? :close : :gap } if (seed % 3).zero?
      both = sides(history: [6_000, 30_000, 1_000_000].sample(random: random), heartbeat: 5, gap_policy: policy, documents: documents,
        max_connections: 30, max_connections_per_address: 8)
      now = 1000.0
      ids = []
      grants = []
      present = 0
      700.times do |i|
        now += random.rand(0.3)
        answers = step(random, both, ids, now, grants)
        assert answers.first == answers.last, "step #{i}: #{answers.inspect}" if answers
        # What an engine announces at once, and what when it serves, is its own: after a coming or a going both serve.
        moved = present != (present = both.first.engine.stats[:subscribers])
        next unless moved || random.rand(3).zero?
        max_bytes = random.rand(1..6_000)
        both.each { |side| side.drain(max_bytes, now) }
        assert_same(both, "step #{i}")
      end
      both.first.readers.each_index { |place| both.each { |side| side.open(place, nil) } }
      both.each { |side| side.drain(65_536, now) }
      assert_same(both, "at the end")
      refute_empty both.last.received.join
    end
  end
end
