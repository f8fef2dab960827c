# frozen_string_literal: true

require "hikyaku/hub"

# An engine in Ruby with streams in several forms, whose bytes are their connections.
module FormingEngine
  Form = Hikyaku::Hub::Form
  HUB_URL = "https://hub.example.com/.well-known/mercure"

  def setup
    @topics = Hikyaku::Hub::Topics.new(hub_url: HUB_URL)
    @engine = Hikyaku::Hub::RubyEngine.new(topics: @topics, heartbeat: nil)
  end

  def matchers_of(*topics) = topics.map { |topic| Hikyaku::Hub::Matcher.build(type: "exact", pattern: topic, base: HUB_URL) }

  def subscribe(topic = "/a", reads: [], **options)
    subscriber = @engine.subscribe(Hikyaku::Hub::Grant.new(matchers: matchers_of(topic), reads: matchers_of(*reads)), now: 1.0, **options)
    subscriber.connection = +"".b
    @engine.writable(subscriber)
    subscriber
  end

  def publish(data, topic = "/a", **options)
    @engine.publish(Hikyaku::Hub::Update.new(topics: topic, data: data, **options), topics: [@topics[topic]], now: 1.0)
    drain
  end

  def drain
    @engine.serve(1_000, 65_536, now: 1.0) { |subscriber, bytes| subscriber.connection << bytes and bytes.bytesize }
  end

  # @return [Array<Integer>] before which of the events that it published the context of a group was begun anew
  def beginnings(group)
    blocks = group.instance_variable_get(:@blocks)
    events = 0
    found = []
    trace = TracePoint.new(:call) do |point|
      next unless point.self.equal?(blocks)
      found << events if point.method_id == :begin_anew
      events += 1 if point.method_id == :follow
    end
    trace.enable { yield }
    found
  end
end
