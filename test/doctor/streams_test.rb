# frozen_string_literal: true

require "test_helper"
require "support/examination"

# What may happen to a stream on its way: each defect is found, by its check, and for what it is.
class DoctorStreamsTest < Minitest::Test
  include Examination

  # Nearly all of it is waiting.
  parallelize_me!

  ANONYMOUS = {keys: []}.freeze

  test "flush: a head that comes only with the first event" do
    found = assert_says :fail, /only with the first event/, check("flush", proxy(hubs: [hub(HOME, heartbeat: 0)], head_with_body: true), patience: 1)
    assert_match(/when it is there/, found.advice.first)
    assert_well check("flush", proxy)
  end

  test "flush: without a publisher, a head that comes with the hub's comment" do
    quiet = proxy(hubs: [hub(HOME, heartbeat: 4)], head_with_body: true)
    assert_says :fail, /comes after .*, with the hub's first comment/, check("flush", quiet, **ANONYMOUS, patience: 0.4)
  end

  test "buffering: by size" do
    found = assert_says :fail, /until about \d+ KB are there/, check("buffering", proxy(hubs: [hub(HOME, heartbeat: 0)], hold: {bytes: 12_000}), **IMPATIENT)
    assert_equal "size", found.measured[:held_by]
    assert_operator found.measured[:bytes], :>=, 12_000
    assert(found.advice.any? { |line| line.include?("proxy_buffering off") })
  end

  test "buffering: by time" do
    found = assert_says :fail, /something holds them back for a time/, check("buffering", proxy(hubs: [hub(HOME, heartbeat: 0)], hold: {seconds: 2}), **IMPATIENT)
    assert_equal "time", found.measured[:held_by]
    assert_operator found.measured[:seconds], :>, 0.25
  end

  test "buffering: until more bytes follow" do
    found = assert_says :fail, /only when the next is published/, check("buffering", proxy(hubs: [hub(HOME, heartbeat: 4)], hold: {behind: true}), patience: 1.5)
    assert_equal "next bytes", found.measured[:held_by]
  end

  test "buffering: for ever" do
    found = assert_says :fail, /nor when 256 KB more were published/, check("buffering", proxy(hubs: [hub(HOME, heartbeat: 0)], hold: {bytes: 10_000_000}), **IMPATIENT)
    assert_equal "all", found.measured[:held_by]
  end

  test "buffering: without a publisher, by the hub's comments" do
    assert_says :fail, /first comment comes after/, check("buffering", proxy(hold: {seconds: 2}), **ANONYMOUS, patience: 0.4)
    assert_says :warn, /no comment of the hub came/, check("buffering", proxy(hubs: [hub(HOME, heartbeat: 0)], hold: {bytes: 10_000}), **ANONYMOUS, patience: 0.1)
    assert_says :ok, /first comment comes at once/, check("buffering", proxy, **ANONYMOUS)
  end

  test "what waits for events is not believed when they are held" do
    findings = examine(proxy(hubs: [hub(HOME, heartbeat: 0)], hold: {seconds: 2}), **IMPATIENT, only: %w[buffering reconnection processes])
    assert_equal %i[fail skip skip], findings.map(&:level)
    assert_match(/see buffering/, findings.last.message)
  end

  test "compression: that passes events on is not as it should be" do
    assert_says :warn, /gzip.*against its Cache-Control; events come at once nevertheless/, check("compression", proxy(gzip: :flushed))
    assert_says :warn, /streams are compressed/, check("compression", proxy(gzip: :flushed), **ANONYMOUS)
  end

  test "compression: that holds them back is wrong" do
    found = assert_says :fail, /events are held back by it/, check("compression", proxy(gzip: :held), **IMPATIENT)
    assert_match(/no compression/, found.advice.first)
    assert_well check("compression", proxy)
  end

  test "headers: what caches and proxies are told must arrive" do
    assert_says :warn, /no Cache-Control/, check("headers", proxy(lost: %w[cache-control]))
    assert_says :fail, /lets caches keep it: public, max-age=60/, check("headers", proxy(lost: %w[cache-control], fields: {"cache-control" => "public, max-age=60"}))
    assert_says :warn, /neither no-store nor no-cache/, check("headers", proxy(lost: %w[cache-control], fields: {"cache-control" => "private"}))
    assert_says :fail, /out of a cache/, check("headers", proxy(fields: {"x-cache" => "HIT"}))
    assert_says :fail, /out of a cache/, check("headers", proxy(fields: {"age" => "12"}))
    assert_says :warn, /asks proxies to buffer/, check("headers", proxy(lost: %w[x-accel-buffering], fields: {"x-accel-buffering" => "yes"}))
    assert_says :ok, /taken out on the way, as nginx does/, check("headers", proxy(lost: %w[x-accel-buffering]))
    assert_says :fail, /Content-Length/, check("headers", proxy(stream_fields: {"content-length" => "10"}))
  end

  test "headers: the type must be that of an event stream" do
    assert_says :fail, %r{its type is text/plain}, check("headers", proxy(lost: %w[content-type], fields: {"content-type" => "text/plain"}))
    assert_says :warn, /charset=latin1/, check("headers", proxy(lost: %w[content-type], fields: {"content-type" => "text/event-stream; charset=latin1"}))
    assert_says :ok, //, check("headers", proxy(lost: %w[content-type], fields: {"content-type" => "text/event-stream;charset=UTF-8"}))
  end

  test "idle: a stream that is cut in silence" do
    found = assert_says :fail, /closed after \S+ m?s without a byte/, check("idle", proxy(hubs: [hub(HOME, heartbeat: 0)], silence: 1), idle: 10)
    assert_operator found.measured[:silent], :>=, 0.9 # each has its own clock
    assert(found.advice.any? { |line| line.include?("proxy_read_timeout") })
  end

  test "idle: a stream that is cut although the hub speaks" do
    found = assert_says :fail, /though comments came each/, check("idle", proxy(lifetime: 3.5), idle: 20, behind: %w[thruster])
    assert(found.advice.any? { |line| line.include?("HTTP_WRITE_TIMEOUT=0") })
  end

  test "idle: a stream that the hub ends itself" do
    assert_says :warn, /the hub itself ended the stream/, check("idle", hub(HOME, max_lifetime: 1), idle: 10)
  end

  test "idle: a stream that is open and dead" do
    assert_says :fail, /seems open, but an event does not come/, check("idle", proxy(deaf: 0.5), idle: 1, patience: 0.2)
  end

  test "idle: comments that come several at once were held back" do
    assert_says :fail, /come several at once/, check("idle", proxy(hold: {seconds: 4}), **ANONYMOUS, idle: 9, patience: 1)
  end

  test "reconnection: a header that does not get through" do
    found = assert_says :fail, /the header does not get to the hub/, check("reconnection", proxy(without: %w[last-event-id]), patience: 1)
    assert_match(/Last-Event-ID/, found.advice.first)
    assert_says :fail, /the header does not get to the hub; the parameter does/, check("reconnection", proxy(without: %w[last-event-id]), **ANONYMOUS)
  end

  test "reconnection: a field of the answer that is taken out" do
    assert_says :warn, /gets what was missed, but mercure-last-event-id is taken out/, check("reconnection", proxy(lost: %w[mercure-last-event-id]))
    assert_says :warn, /does not come/, check("reconnection", proxy(lost: %w[mercure-last-event-id]), **ANONYMOUS)
    assert_says :ok, /gets to the hub/, check("reconnection", proxy, **ANONYMOUS)
  end

  test "reconnection: another hub, which does not know what was missed" do
    # The stream and the publishes come to the one, who comes back to the other.
    hubs = [hub] * 7 + [hub(HOME, history: 1_000_000)] * 2
    assert_says :fail, /does not know an event of a moment ago/, check("reconnection", proxy(hubs: hubs), patience: 0.5)
  end

  test "processes: two hubs behind one address" do
    hubs = [hub, hub(HOME, history: 1_000_000)]
    found = assert_says :fail, /several hubs answer, and do not know of each other \(2 answered\)/, check("processes", proxy(hubs: hubs), patience: 0.5)
    assert_operator found.measured[:short], :>, 0
    assert_well check("processes", proxy(hubs: [hub, hub]))
  end

  test "processes: buffering does not take what is lost for what is held" do
    hubs = [hub, hub(HOME, history: 1_000_000)]
    findings = examine(proxy(hubs: hubs), **IMPATIENT, only: %w[buffering processes])
    assert_among :warn, /do not come at all, while later ones do: see processes/, findings
    assert_among :fail, /several hubs/, findings
  end
end
