# frozen_string_literal: true

require "support/protocol_test"

# Mercure draft-08, section "Subscription".
class Protocol::SubscriptionTest < Protocol::Test
  test "GET opens a stream that is not to be cached, transformed or buffered (Subscription)" do
    stream = follow(topic)
    assert_equal 200, stream.status
    assert_match %r{\Atext/event-stream(;|\z)}, stream["content-type"]
    assert_includes stream["cache-control"], "no-store"
    assert_equal "no", stream["x-accel-buffering"]
    assert_nil stream["content-length"]
    assert_nil stream["mercure-last-event-id"], "no cursor was sent"
  end

  test "the stream begins with a comment, so that proxies and clients see it at once (Subscription)" do
    stream = follow(topic)
    assert_operator stream.comments_until(1).size, :>=, 1
    assert stream.silent?
  end

  test "a subscriber is registered before it is answered: nothing that follows is missed (Subscription)" do
    20.times do |i|
      stream = follow(topic(i))
      publish(topic(i), "at once")
      assert_next "at once", stream
    end
  end

  test "HEAD answers as GET would, with the cursor, and without a stream or a subscription (Subscription; Reconnection)" do
    start
    id = publish(topic, "x")
    before = hub.stats.slice(:subscribers, :publishes)
    response = get("#{server.path}?#{form("match" => topic, "last_event_id" => id)}", method: "HEAD")
    assert_equal 200, response.status
    assert_match %r{\Atext/event-stream}, response["content-type"]
    assert_equal id, response["mercure-last-event-id"]
    assert_equal before, hub.stats.slice(:subscribers, :publishes), "no subscription, and so no event of one"
    assert_equal 400, get(server.path, method: "HEAD").status
  end

  test "a QUERY carries its matchers in the body (Subscription)" do
    stream = subscribe({}, method: "QUERY", body: {"match" => topic})
    assert_equal 200, stream.status
    publish(topic, "x")
    assert_next "x", stream
  end

  test "a QUERY's matchers are the union of body and query component (Subscription)" do
    stream = subscribe({"match" => topic(1)}, method: "QUERY", body: [["match", topic(2)], ["match_exact", topic(3)]])
    3.times { |i| publish(topic(i + 1), (i + 1).to_s) }
    assert_equal %w[1 2 3], stream.take(3).map(&:data)
  end

  test "a QUERY without a body has the query component alone (Subscription)" do
    [{}, {body: ""}].each do |options|
      stream = subscribe({"match" => topic}, method: "QUERY", **options)
      assert_equal 200, stream.status
      publish(topic, "x")
      assert_next "x", stream
      stream.close
    end
  end

  test "a QUERY's cursor may be in either; the query component wins, the header beats both (Subscription; Reconnection)" do
    ids = Array.new(4) { |i| publish(topic, i.to_s) }
    cursor = ->(i) { {"last_event_id" => ids[i]} }
    cases = [
      [{"match" => topic}.merge(cursor[0]), cursor[2], {}, 0],
      [{"match" => topic}, cursor[2], {}, 2],
      [cursor[1], {"match" => topic}, {}, 1],
      [{"match" => topic}.merge(cursor[0]), cursor[1], {"last-event-id" => ids[2]}, 2]
    ]
    cases.each do |query, body, headers, expected|
      stream = subscribe(query, method: "QUERY", body: body, headers: headers)
      assert_equal ids[expected], stream["mercure-last-event-id"]
      assert_equal (expected + 1..3).map(&:to_s), stream.take(3 - expected).map(&:data)
      stream.close
    end
  end

  test "a QUERY's body must be a form, and has the rules and limits of the query component (Subscription)" do
    ["application/json", "", "text/plain"].each do |type|
      assert_problem 400, subscribe({"match" => topic}, method: "QUERY", body: "match=a", headers: {"content-type" => type}), type.inspect
    end
    ["Match=a", "match_foo=a", "match=a%00b", "match=%FF", "match=%E2%80%AEx", "x=y", "match_exact2=a"].each do |body|
      assert_problem 400, subscribe({}, method: "QUERY", body: body), body
    end
    assert_problem 400, subscribe({"match" => topic}, method: "QUERY", body: "MATCH=a"), "one bad parameter beside a good one"
  end

  test "the body of a GET is not looked at (RFC 9110, section 9.3.1)" do
    stream = subscribe({"match" => topic}, body: {"match_foo" => "x"})
    assert_equal 200, stream.status
  end

  test "other methods are refused, naming those that are understood" do
    # Puma itself answers to what it does not know.
    others = (HubServer::OWN && HubServer::ENGINE == "ruby") ? [] : %w[PROPFIND FROB]
    (%w[PUT DELETE PATCH TRACE] + others).each do |method|
      response = client.request(method, "#{server.path}?match=a", headers: bearer(publisher))
      assert_problem 405, response, method
      assert_equal %w[GET HEAD OPTIONS POST QUERY], response["allow"].split(", ").sort
    end
  end

  test "match, match_exact and several of them in one request (Subscription; Matcher Types)" do
    stream = subscribe([["match", topic(1)], ["match_exact", topic(2)], ["match", topic(3)]])
    4.times { |i| publish(topic(i), i.to_s) }
    assert_equal %w[1 2 3], stream.take(3).map(&:data)
    assert stream.silent?
  end

  test "every other name in the match namespace is refused, in any case (Subscription)" do
    %w[Match MATCH mAtch match_ match_foo match_Exact match_EXACT Match_exact match_URLPattern match_uri_template matcher matches
      match-exact matchexact match[] match% MATCH_URLPATTERN match_exact_ match_topic match.urlpattern matchée].each do |name|
      response = subscribe([["match", topic], [name, "x"]])
      assert_problem 400, response, name
      assert_problem 400, subscribe("match=a&#{name}"), "#{name} without a value"
    end
    # The rule is applied to the decoded names.
    assert_problem 400, subscribe("match=a&%4datch=x")
    assert_equal 200, subscribe("m%61tch=a").status
  end

  test "other parameters are ignored (Subscription)" do
    %w[Topic topic foo xmatch a-match last_event lastEventID authorization access_token _ id].each do |name|
      stream = subscribe([["match", topic], [name, "x"]])
      assert_equal 200, stream.status, name
      assert_nil stream["mercure-last-event-id"], name
      stream.close
    end
  end

  test "a request without a matcher is refused (Subscription)" do
    ["", "x=y", "last_event_id=earliest", "topic=x", "&&", "=", "=match"].each { |query| assert_problem 400, subscribe(query), query }
  end

  test "a name without a value has an empty one (Subscription)" do
    # No topic can be empty: it would be the hub itself. So the matcher is accepted and selects nothing.
    %w[match match= match_exact match&match=x].each do |query|
      stream = subscribe(query)
      assert_equal 200, stream.status, query
      stream.close
    end
  end

  test "values that may not be in a matcher are refused, whatever the type (Subscription)" do
    ["%00", "a%0Ab", "%0D", "%1F", "%7F", "%C2%80", "%C2%9F", "%C2%AD", "%E2%80%8B", "%E2%80%AE", "%E2%81%A6", "%EF%BB%BF", "%F3%A0%80%81",
      "%FF", "%C3", "%C0%AF", "%ED%A0%80", "%F4%90%80%80", "%E2%28%A1", "%80"].each do |value|
      %w[match match_exact match_urlpattern].each do |name|
        assert_problem 400, subscribe("#{name}=https://example.com/#{value}"), "#{name} #{value}"
      end
    end
  end

  test "the query component is parsed as the URL standard has it (Subscription)" do
    {
      "match=a+b" => "a b", "match=a%2Bb" => "a+b", "match=a;b" => "a;b", "match=a=b" => "a=b", "match=a%26b" => "a&b",
      "match=100%" => "100%", "match=%zz" => "%zz", "&&match=x&" => "x", "match=%E6%9C%A8" => "木", "match=\xE6\x9C\xA8".b => "木",
      "match=https%3A%2F%2Fexample.com%2F%3Fa%3D1%26b%3D2%23c" => "https://example.com/?a=1&b=2#c"
    }.each do |query, name|
      stream = subscribe(query)
      assert_equal 200, stream.status, query
      publish(name, "x")
      assert_next "x", stream, query
      stream.close
    end
  end

  test "matchers are not merged into one subscription unless they are the same (Subscription)" do
    same = subscribe([["match", topic], ["match_exact", topic], ["match", topic]])
    assert_equal 1, hub.subscriptions(type: "exact", pattern: topic).last.size
    publish(topic, "once")
    assert_equal ["once"], received(same, topic)
  end

  test "what matches several matchers of a subscriber arrives once (Subscription)" do
    stream = subscribe([["match", topic(1)], ["match", topic(2)], ["match", "*"]])
    publish([topic(1), topic(2)], "once")
    assert_equal ["once"], received(stream, topic(1)).reject { |data| data.start_with?("{") }
  end

  test "a hub that is not anonymous wants a token of every subscriber (Authorization)" do
    start(anonymous: false)
    assert_challenge 401, nil, subscribe("match" => topic)
    stream = subscribe({"match" => topic}, token: subscriber("https://example.com/unrelated"))
    assert_equal 200, stream.status
    publish(topic, "public")
    assert_next "public", stream
  end

  test "a token that grants nothing lets its bearer listen to public updates (Authorization Details)" do
    [subscriber(details: []), subscriber(authorization_details: :absent), token(:subscriber, details: [detail(topic, actions: ["dance"])])].each do |token|
      stream = follow(topic, token: token)
      publish(topic, "private", private: "on")
      publish(topic, "public")
      assert_next "public", stream
      stream.close
    end
  end

  test "a silent stream gets comments as a keep-alive (Subscription)" do
    start(heartbeat: 0.25)
    stream = follow(topic)
    assert_operator stream.comments_until(3).size, :>=, 3
    publish(topic, "x")
    assert_next "x", stream
  end

  test "there is nothing beside and below the hub's path that is not its own" do
    ["/", "/.well-known", "/.well-known/mercure/", "/.well-known/mercure/x", "/.well-known/mercurex", "//.well-known/mercure",
      "/.well-known/Mercure", "/.well-known/mercure/ui/", "/.well-known/mercure/figures"].each do |path|
      assert_problem 404, get("#{path}?match=a"), path
    end
  end
end
