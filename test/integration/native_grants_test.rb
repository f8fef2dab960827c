# frozen_string_literal: true

require "support/native_test"
require "support/random_requests"
require "tempfile"
require "yaml"

# No decision is ever served to other values than those that it was taken for: a hub that remembers decisions (the engine in C)
# and one that takes each anew (the one in Ruby, on another server) get the same requests, and answer and deliver alike.
class Integration::NativeGrantsTest < Integration::NativeTest
  REQUESTS = 900
  # What is said of the request's values, beside the status.
  DECIDING = %w[content-type www-authenticate access-control-allow-origin access-control-allow-credentials access-control-expose-headers vary
    mercure-last-event-id last-event-id retry-after cache-control allow].freeze
  # What is published for each stream, with its mark behind it.
  PUBLICATIONS = ["topic=/a&private=&data=a ", "topic=/b&private=&data=b ", "topic=/a&data=public ", "topic=/x&private=&data=x ", "topic=#{RandomRequests::MARK}&data="].freeze
  private_constant :REQUESTS, :DECIDING, :PUBLICATIONS

  test "two hubs that get the same requests of random values, one remembering, give the same answers and the same updates to the same people" do
    seed = Random.new_seed % 1_000_000
    @random = Random.new(seed)
    hubs = %w[ruby c].map { |engine| start_hub_on(engine) }
    witnesses = hubs.map { |hub| follow(hub, "*", token: token(:subscriber, "*")) }
    @short_until = Time.now.to_i + RandomRequests::SHORT
    requests = RandomRequests.new(@random, short_until: @short_until)
    outcomes = Hash.new(0)
    REQUESTS.times { |number| outcomes[compare(hubs, *requests.next, number, seed)] += 1 }
    hubs.each { |hub| hub.publish("/end", "the end") }
    told = witnesses.map { |witness| witness.until("the end", 30).map { |event| [event.type, event.data] } }
    assert_equal told.first, told.last, "seed #{seed}"
    assert_operator outcomes.keys.size, :>=, 6, outcomes
    hits = hubs.last.metrics["grant_hits_total"] - PUBLICATIONS.size * outcomes[[:subscribe, 200]]
    assert_operator hits, :>, REQUESTS / 10, "too little was answered from what was remembered: #{outcomes}"
  end

  private

  def start_hub_on(engine)
    file = Tempfile.new(["hub", ".yml"])
    file.write(YAML.dump(RandomRequests.configuration))
    file.close
    start_native("--config", file.path, "--legacy", "--cors-origin", RandomRequests::ALLOWED, "--publish-origin", RandomRequests::ALLOWED,
      "--heartbeat", "0", "--log-level", "warn", engine: engine)
  end

  def compare(hubs, kind, request, number, seed)
    hold_still_while_a_token_ends
    answers = hubs.map { |hub| Thread.new { ask(hub, kind, request, "mark-#{number}") } }.map(&:value)
    assert_equal answers.first, answers.last, "request #{number} of seed #{seed}:\n#{request}"
    [kind, answers.first.first]
  end

  # In that moment both would be right to differ.
  def hold_still_while_a_token_ends
    left = @short_until - Time.now.to_f
    sleep left + 0.2 if left.between?(-0.2, 0.3)
  end

  # @return [Array] status, headers, and the updates that a stream has got
  def ask(hub, kind, request, mark)
    connection = hub.client.connect
    connection.write(request)
    response = connection.head(HttpClient.now + HttpClient::PATIENCE)
    stream = response.status == 200 && kind == :subscribe
    [response.status, deciding(response), stream ? updates(hub, EventStream.new(connection, response), mark) : text(connection, response)]
  ensure
    connection&.close
  end

  def deciding(response)
    response.headers.filter_map { |name, value| [name, value.gsub(/#[\w-]{11}/, "#id")] if DECIDING.include?(name) }.sort
  end

  def text(connection, response) = connection.body(response, "GET", HttpClient.now + HttpClient::PATIENCE).gsub(/#[\w-]{11}|urn:uuid:[\h-]+/, "id")

  # What comes of private updates, of public ones, and of what was there before.
  def updates(hub, stream, mark)
    connection = hub.client.connect
    connection.write(PUBLICATIONS.map { |body| publication("#{body}#{mark}", token: hub.publisher) }.join)
    PUBLICATIONS.each { assert_equal 200, answer(connection).status }
    stream.until(mark).map { |event| [event.type, event.data.gsub(/#[\w-]{11}/, "#id")] }
  ensure
    connection&.close
  end
end
