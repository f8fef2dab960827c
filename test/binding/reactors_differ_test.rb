# frozen_string_literal: true

require "test_helper"
require "socket"
require "timeout"
require "hikyaku/hub"
require "hikyaku/server/native_reactor"
require "hikyaku/server/reactor"

# Both reactors, each with its engine, carry the same random sequence over real sockets: whatever arrives is the same, byte
# for byte, however slowly it is read.
class ReactorsDifferTest < Minitest::Test
  HUB_URL = "https://hub.example.com/.well-known/mercure"
  SEEDS = ENV.fetch("SEEDS", "1..3").then { |range| Range.new(*range.split("..").map(&:to_i)) }
  TOPICS = ["/a", "/b", "/books/1", "/books/2", "https://EXAMPLE.com/x", "urn:x"].freeze
  MATCHERS = [["exact", "/a"], ["exact", "/b"], ["exact", "*"], ["urlpattern", "/books/:id"], ["urlpattern", "https://example.com/*"], ["uri_template", "/books/{id}"]].freeze
  LAST = "/the/end"

  Reader = Struct.new(:socket, :received) do
    # What is there, without waiting.
    def sip(bytes)
      part = socket.read_nonblock(bytes, exception: false)
      received << part if part.is_a?(String)
    end

    def finish
      received << socket.readpartial(65_536) until received.end_with?("data: over\n\n")
      received
    end
  end

  # A hub with its driver and its readers.
  class Side
    attr_reader :hub, :readers

    def initialize(reactor, **options)
      @hub = Hikyaku::Hub.new(hub_url: HUB_URL, heartbeat: nil, **options)
      @reactor = reactor.new(@hub)
      @readers = []
    end

    def subscribe(grant, cursor)
      ours, theirs = UNIXSocket.pair
      @reactor.attach(@hub.subscribe(grant, last_event_id: cursor), ours)
      @readers << Reader.new(theirs, +"".b)
    end

    def stop
      @hub.shutdown
      @readers.each { |reader| reader.socket.close }
    end
  end

  def sides
    key = Random.bytes(16)
    [Side.new(Hikyaku::Server::Reactor, engine: Hikyaku::Hub::RubyEngine, cipher: Hikyaku::Log::PositionCipher.new(key: key)),
      Side.new(Hikyaku::Server::NativeReactor, engine: Hikyaku::Hub::NativeEngine, key: key)]
  end

  def matchers(random, most)
    MATCHERS.sample(random.rand(1..most), random: random).map { |type, pattern| Hikyaku::Hub::Matcher.build(type: type, pattern: pattern, base: HUB_URL) }
  end

  def grant(random)
    last = Hikyaku::Hub::Matcher.build(type: "exact", pattern: LAST, base: HUB_URL)
    Hikyaku::Hub::Grant.new(matchers: [*matchers(random, 3), last], reads: random.rand(2).zero? ? [] : matchers(random, 2))
  end

  def update(random)
    Hikyaku::Hub::Update.new(topics: TOPICS.sample(random.rand(1..2), random: random), data: ["x", "two\nlines", "é" * 300, "L" * 200_000].sample(random: random),
      private: random.rand(3).zero?, type: [nil, "note"].sample(random: random), id: [nil, nil, "urn:#{random.rand(9)}"].sample(random: random))
  end

  SEEDS.each do |seed|
    test "what arrives is the same with both reactors, seed #{seed}" do
      random = Random.new(seed)
      both = sides
      ids = ["earliest", "", "urn:never", nil, nil]
      grants = Array.new(4) { grant(random) }
      150.times do
        case random.rand(6)
        when 0
          chosen, cursor = grants.sample(random: random), ids.sample(random: random)
          both.each { |side| side.subscribe(chosen, cursor) }
        when 1
          bytes = random.rand(1..50_000)
          both.each { |side| side.readers.sample(random: Random.new(bytes))&.sip(bytes) }
        else
          sent = update(random)
          ids << both.map { |side| side.hub.publish(sent) }.uniq.then { |same| same.one? ? same.first : flunk("ids differ: #{same}") }
        end
      end
      both.each { |side| side.hub.publish(Hikyaku::Hub::Update.new(topics: LAST, data: "over", id: "urn:over")) }
      ruby, native = Timeout.timeout(60) { both.map { |side| side.readers.map(&:finish) } }
      assert_operator native.size, :>, 10
      ruby.zip(native).each_with_index do |(expected, actual), place|
        assert expected == actual, -> { "reader #{place}: #{expected.bytesize} and #{actual.bytesize} bytes, the same up to #{(0..expected.bytesize).find { |i| expected.getbyte(i) != actual.getbyte(i) }}" }
      end
    ensure
      both&.each(&:stop)
    end
  end
end
