# frozen_string_literal: true

require "hikyaku/hub"

# What every hub engine must do. Including tests define `new_engine(topics:, **options)`.
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
    @engine = make_engine
  end

  def make_engine(heartbeat: nil, **options) = new_engine(topics: @topics, heartbeat: heartbeat, **options)

  def exact(*patterns) = patterns.map { |pattern| Hikyaku::Hub::Matcher.build(type: "exact", pattern: pattern, base: HUB_URL) }

  def pattern(*patterns) = patterns.map { |pattern| Hikyaku::Hub::Matcher.build(type: "urlpattern", pattern: pattern, base: HUB_URL) }

  # A matcher of 0.x clients.
  def template(text) = Hikyaku::Hub::Matcher.build(type: "uri_template", pattern: text, base: HUB_URL)

  def grant(matchers, reads: [], **options)
    Hikyaku::Hub::Grant.new(matchers: Array(matchers), reads: exact(*reads), **options)
  end

  def publish(topics, data = "x", **options)
    update = Hikyaku::Hub::Update.new(topics: topics, data: data, **options)
    @engine.publish(update, topics: update.topics.map { |topic| @topics[topic] }, now: @now)
  end

  def subscribe(matchers, room: nil, reads: [], subject: nil, **options)
    skip_unless_available(headers: "zlib.h") if options[:coding] == :gzip && !@engine.offers?(:events, :gzip)
    subscriber = @engine.subscribe(grant(matchers, reads: reads || [], subject: subject), now: @now, **options)
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
      closed.each { |subscriber| @engine.unsubscribe(subscriber, now: @now) }
      return closed unless more
    end
  end

  def received(subscriber)
    drain
    subscriber.connection.data
  end

  PARTS = []

  # Adds tests to the contract.
  def self.tests(&block) = PARTS << block

  # The codings that the tests of an engine must try.
  def self.codings(base) = (base < CompressionContract) ? %i[identity gzip] : %i[identity]

  def self.included(base)
    base.extend(SentenceTests)
    PARTS.each { |part| base.class_eval(&part) }
  end

  def listed(**options)
    found = []
    @engine.each_subscription(**options) { |subscription| found << subscription }
    found
  end
end

require "contracts/engine/changing"
require "contracts/engine/changing_at_random"
require "contracts/engine/coming_and_going"
require "contracts/engine/compression"
require "contracts/engine/formats"
require "contracts/engine/looking_in"
require "contracts/engine/naming"
require "contracts/engine/naming_at_random"
require "contracts/engine/publishing"
require "contracts/engine/replay"
require "contracts/engine/slow_readers"
require "contracts/engine/time"
