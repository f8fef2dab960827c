# frozen_string_literal: true

require "support/protocol_test"

# Every limit of the configuration, at it and one beyond: Mercure draft-08, sections "Publication", "Subscription",
# "Authorization Details" and "Resource Limits". (Those of a token's details: authorization_details_test.)
class Protocol::LimitsTest < Protocol::Test
  settings max_request_bytes: 4_000, max_topics: 3, max_topic_bytes: 200, max_id_bytes: 20, max_type_bytes: 10, max_matchers: 4, max_pattern_bytes: 150, max_token_bytes: 1_200

  test "the size of a publish's body (Publication: 413)" do
    body = ->(size) { "topic=a&data=".ljust(size, "x") }
    assert_equal 200, post(body[4_000]).status
    assert_equal "the body is larger than the 4000 bytes that max_request_bytes allows", assert_problem(413, post(body[4_001]))
    assert_match(/max_request_bytes/, assert_problem(413, post(body[100_000])))
    chunked = ->(size) { {headers: {"transfer-encoding" => "chunked", "content-type" => "application/x-www-form-urlencoded"}.merge(bearer(publisher)), body: "#{size.to_s(16)}\r\n#{body[size]}\r\n0\r\n\r\n"} }
    assert_equal 200, client.request("POST", server.path, **chunked[4_000]).status
    assert_match(/max_request_bytes/, assert_problem(413, client.request("POST", server.path, **chunked[4_001])))
  end

  test "a length that only promises too much is refused before it comes (Publication: 413)" do
    head = "POST #{server.path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/x-www-form-urlencoded\r\nauthorization: Bearer #{publisher}\r\n"
    assert_problem 413, client.raw("#{head}content-length: 4001\r\nconnection: close\r\n\r\n#{"x" * 4001}")
  end

  test "the number of topics (Publication: 413)" do
    topics = ->(count) { Array.new(count) { |i| ["topic", topic(i)] } }
    assert_equal 200, post(topics[3]).status
    assert_match(/max_topics/, assert_problem(413, post(topics[4])))
    assert_problem 413, post([["topic", topic]] * 4)
  end

  test "the length of a topic, an id and a type, in bytes (Publication: 413)" do
    {"topic" => 200, "id" => 20, "type" => 10}.each do |name, limit|
      rest = {"topic" => topic}.reject { |key, _| key == name }
      ["x" * limit, "é" * (limit / 2)].each do |value|
        assert_equal 200, post(rest.merge(name => value).to_a).status, name
        assert_problem 413, post(rest.merge(name => "#{value}x").to_a), name
      end
      assert_problem 413, post([["topic", topic], ["topic", "x" * 201]])
    end
  end

  test "what is not allowed at all is 400, also where it is too long besides" do
    assert_problem 400, post("data=x")
    assert_problem 400, post("topic" => topic, "retry" => "x" * 3000)
    assert_problem 400, post("topic" => topic, "retry" => "9" * 1000), "a time beyond all measure"
  end

  test "the number of matchers, and their length (Subscription: 400)" do
    matchers = ->(count) { Array.new(count) { |i| ["match", topic(i)] } }
    assert_equal 200, subscribe(matchers[4]).status
    [matchers[5], matchers[3] + [["match_urlpattern", "/a"], ["match_exact", "b"]], [["match", "a"]] * 5].each { |parameters| assert_problem 400, subscribe(parameters) }
    assert_problem 400, subscribe(matchers[2], method: "QUERY", body: matchers[3])
    %w[match match_exact match_urlpattern].each do |name|
      ["https://example.com/".ljust(150, "x"), "https://example.com/" + "é" * 65].each do |value|
        assert_equal 200, subscribe(name => value).status, name
        assert_problem 400, subscribe(name => "#{value}x"), name
      end
    end
  end

  def restart(**settings)
    @own&.stop
    start(**settings)
  end

  test "what one pattern compiles to: 400, which names the pattern and the limit (Subscription; URL-Pattern Denial of Service)" do
    start(max_pattern_instructions: 100, max_pattern_bytes: 4_096)
    assert_equal 200, subscribe("match_urlpattern" => "https://example.com/:x([a-z]{100})").status
    assert_equal 200, subscribe("match_urlpattern" => "https://example.com/#{"a" * 3_000}/:x/y").status, "fixed text at the beginning counts nothing"
    ["/:x([a-z]{101})", "/:x([a-z]{50})?:y([a-z]{60})", "/:x((?:a{1,20}){1,20})", "/:x([a-z]{1,1000000})", "/:x(#{"a|" * 50}b)"].each do |pattern|
      detail = assert_problem(400, subscribe("match_urlpattern" => "https://example.com#{pattern}"))
      assert_includes detail, "https://example.com#{pattern}"[0, 60]
      assert_match(/more than (the 100|16384)/, detail)
    end
  end

  test "what the patterns of one request take to compile: 400, and nothing for those that are in use or were compiled lately" do
    start(max_pattern_work: 2_000, max_pattern_cost: 10_000, max_pattern_bytes: 4_096)
    patterns = ->(count, from: 0) { Array.new(count) { |i| ["match_urlpattern", "https://example.com/:x([a-z]{500})/#{from + i}"] } }
    known = {token: subscriber("*")}
    assert_equal 200, subscribe(patterns[3], **known).status
    assert_match(/2\d\d\d bytes and instructions, more than the 2000/, assert_problem(400, subscribe(patterns[4, from: 10], **known)))
    assert_equal 200, subscribe(patterns[2, from: 2], **known).status
    assert_equal 200, subscribe(patterns[4], **known).status, "they were compiled before"
    assert_match(/more than the 500/, assert_problem(400, subscribe(patterns[1, from: 30])), "without a token a quarter")
    assert_equal 200, subscribe(patterns[3]).status
  end

  test "what the patterns of one reader cost to match: 400, and a quarter for readers without a token (Resource Limits)" do
    start(max_pattern_cost: 128)
    costly = ->(count) { Array.new(count) { |i| ["match_urlpattern", "https://example.com/*#{i}a*a*a*a*a*a*a*a*b"] } }
    known = {token: subscriber("*")}
    assert_equal 200, subscribe(costly[4], **known).status
    assert_equal 200, subscribe(costly[1]).status
    assert_problem 400, subscribe(costly[2])
    restart(max_pattern_cost: 127)
    assert_match(/more than the 127/, assert_problem(400, subscribe(costly[4], **known)))
    assert_equal 200, subscribe(costly[3], **known).status
    assert_problem 400, subscribe(costly[1])
    cheap = %w[/books/* /books/:id /books /*].map { |pattern| ["match_urlpattern", "https://example.com#{pattern}"] }
    assert_equal 200, subscribe(cheap).status
  end

  test "what the patterns of all readers, and of one address, cost to match: 429, and when to come again (Resource Limits)" do
    costly = ->(i) { {"match_urlpattern" => "https://example.com/*#{i}a*a*a*a*a*a*a*a*b"} }
    [{max_pattern_cost_total: 64}, {max_pattern_cost_per_beginning: 64}, {max_pattern_cost_per_address: 64, max_connections_per_address: 100}].each do |limit|
      restart(**limit)
      assert_equal [200, 200], Array.new(2) { |i| subscribe(costly[i]).status }
      2.times do
        refused = subscribe(costly[2])
        assert_problem 429, refused
        assert_match(/\A[1-9]\d*\z/, refused["retry-after"])
      end
      assert_equal 200, subscribe(costly[1]).status, "one that is in use costs nothing more"
      assert_equal 200, subscribe("match_urlpattern" => "https://example.com/*").status
      @streams.each(&:close)
      @streams.clear
      eventually { hub.stats[:pattern_cost].zero? }
      assert_equal 200, subscribe(costly[2]).status
    end
  end

  test "by default a reader without a token may have 100 patterns of the usual kinds" do
    start(legacy: true, max_request_bytes: 100_000, max_matchers: 100)
    ["match_urlpattern=https://example.com/:kind/%d/:book", "match_urlpattern=https://example.com/books/:id/%d", "topic=https://example.com/books/%d/{id}"].each do |pattern|
      form = Array.new(100) { |i| (pattern % i).split("=", 2) }
      assert_equal 200, subscribe({}, method: "QUERY", body: URI.encode_www_form(form)).status, pattern
    end
  end

  test "the size of a QUERY's body is that of any request (Subscription; Publication: 413)" do
    assert_equal 200, subscribe({"match" => "a"}, method: "QUERY", body: "x=".ljust(4_000, "y")).status
    assert_problem 413, subscribe({"match" => "a"}, method: "QUERY", body: "x=".ljust(4_001, "y"))
  end

  test "the size of a token, before anything else of it is looked at (Resource Limits: 401)" do
    short = token(:publisher, "*", note: "")
    fitting = token(:publisher, "*", note: "x" * ((1_200 - short.bytesize) * 3 / 4))
    assert_operator fitting.bytesize, :<=, 1_200
    assert_equal 200, post({"topic" => topic}, token: fitting).status
    assert_challenge 401, "invalid_token", post({"topic" => topic}, token: token(:publisher, "*", note: "x" * 900))
    assert_challenge 401, "invalid_token", post({"topic" => topic}, token: "x" * 20_000)
  end

  test "connections in total: 429, and when to come again (Subscription)" do
    start(max_connections: 2)
    streams = [follow(topic), follow(topic)]
    refused = subscribe("match" => topic)
    assert_problem 429, refused
    assert_match(/\A[1-9]\d*\z/, refused["retry-after"])
    assert_nil refused["www-authenticate"]
    # Others are not concerned.
    publish(topic, "x")
    streams.each { |stream| assert_next "x", stream }
    assert_equal 200, get("#{server.path}?match=a", method: "HEAD").status
    # Who leaves makes room, and who was refused is not counted or announced.
    streams.first.close
    eventually { hub.stats[:subscribers] == 1 }
    follow(topic)
    assert_equal 429, subscribe("match" => topic).status
  end

  test "connections of one address: 429 (Subscription)" do
    start(max_connections_per_address: 2, trusted_proxies: ["127.0.0.1", "10.0.0.0/8"])
    2.times { follow(topic) }
    assert_problem 429, subscribe("match" => topic)
    other = {"x-forwarded-for" => "192.0.2.7"}
    streams = Array.new(2) { follow(topic, headers: other) }
    assert_problem 429, subscribe({"match" => topic}, headers: other)
    # Only what a trusted proxy says itself counts, not what it was told.
    ["192.0.2.99, 192.0.2.7", "192.0.2.7, 10.1.2.3", "x, 192.0.2.7 ,10.1.2.3,10.0.0.1"].each { |hops| assert_problem 429, subscribe({"match" => topic}, headers: {"x-forwarded-for" => hops}), hops }
    streams.each(&:close)
    eventually { hub.stats[:subscribers] == 2 }
    follow(topic, headers: other)
  end

  test "an address that no trusted proxy vouches for is not believed" do
    start(max_connections_per_address: 1)
    follow(topic, headers: {"x-forwarded-for" => "192.0.2.1"})
    assert_problem 429, subscribe({"match" => topic}, headers: {"x-forwarded-for" => "192.0.2.2", "forwarded" => "for=192.0.2.3", "x-real-ip" => "192.0.2.4"})
  end

  test "a reader that takes nothing for so long is closed, and no other with it" do
    start(write_timeout: 3, max_request_bytes: 1_048_576)
    stuck = follow(topic)
    reader = follow(topic)
    read = Thread.new { reader.take(20).map { |event| event.data[/\d+/] } }
    20.times { |i| publish(topic, "#{i} ".ljust(500_000, "x")) }
    assert_equal (0...20).map(&:to_s), read.value
    eventually { hub.stats[:subscribers] == 1 }
    stuck.close
  end

  test "a reader that the history passes is told in its stream, and moved on or closed as the setting says (Reconnection: events may be lost)" do
    start(history: 262_144, slow_readers: [["close", "https://example.com/closed/*"], ["gap", "*"]], max_request_bytes: 1_048_576, subscriptions: false)
    told, closed = follow(topic), follow("https://example.com/closed/a")
    600.times { |i| hub.publish(Hikyaku::Hub::Update.new(topics: [topic, "https://example.com/closed/a"], data: "#{i} ".ljust(20_000, "x"))) }
    publish(topic, "end")
    events = told.until("end")
    gaps, events = events.partition { |event| event.type == "mercure" }
    document = JSON.parse(gaps.first.data)
    assert_equal ["gap", "overrun", [{"match" => topic, "match_type" => "exact"}]], document.values_at("type", "reason", "matches")
    numbers = events.map { |event| event.data.to_i }
    assert_equal numbers.uniq.sort, numbers
    assert_operator numbers.size, :<, 600
    assert_operator closed.rest.size, :<, 600
    # The gap event's id is where the stream went on.
    again = follow(topic, headers: {"last-event-id" => events.last.id})
    assert_equal events.last.id, again["mercure-last-event-id"]
    assert_next "end", again
  end

  test "a subscriber that talks on and on is closed: it has nothing to say" do
    start
    connection = client.connect
    connection.write("GET #{server.path}?match=a HTTP/1.1\r\nhost: a\r\n\r\n")
    connection.head(HttpClient.now + HttpClient::PATIENCE)
    quiet = follow(topic)
    50.times { connection.write("x" * 4_096) }
    eventually { hub.stats[:subscribers] == 1 }
    publish(topic, "x")
    assert_next "x", quiet
    connection.close
  end
end
