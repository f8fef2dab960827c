# frozen_string_literal: true

# The whole protocol once, in little: for every way in which the hub can be served. Including tests say `server`.
module ProtocolSmoke
  def smoke
    reader = subscriber(topic, "#{server.path}/subscriptions")
    stream = follow(topic, token: reader)
    query = subscribe({}, method: "QUERY", body: {"match_urlpattern" => topic(":x")}, token: reader)
    first = publish(topic, "one\r\ntwo", type: "t", retry: "1234")
    publish(topic, "secret", private: "on", id: "urn:#{topic}")
    [stream, query].each { |each| assert_equal [["t", "one\ntwo"], %w[message secret]], each.take(2).map { |event| [event.type, event.data] } }
    assert_equal 1234, stream.retry_after
    again = follow(topic, token: reader, headers: {"last-event-id" => first})
    assert_equal [first, "secret"], [again["mercure-last-event-id"], again.next.data]
    large = "x" * 300_000
    publish(topic, large)
    [stream, query, again].each { |each| assert_equal large, each.next.data }
    assert_equal 200, get("#{server.path}?match=a", method: "HEAD").status
    listed = get("#{server.path}/subscriptions", token: reader)
    assert_equal [topic, topic, topic(":x")].sort, listed.json["subscriptions"].map { |document| document["match"] }.sort
    assert_equal 200, get("/.well-known/oauth-protected-resource#{server.path}").status
    assert_equal 204, client.request("OPTIONS", server.path).status
    assert_problem 400, subscribe("match_x" => "a")
    assert_challenge 401, nil, post({"topic" => topic}, token: nil)
    assert_challenge 403, "insufficient_scope", post({"topic" => topic("b")}, token: token(:publisher, topic))
    assert_equal 3, client.request("DELETE", "#{server.path}/subscribers/user-1", headers: bearer(publisher)).json["disconnected"]
    [stream, query, again].each { |each| assert_equal [], each.rest }
  end
end
