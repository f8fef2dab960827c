# frozen_string_literal: true

require "support/protocol_test"

# Closing a subject's streams: not part of the Mercure protocol, which leaves revocation to short tokens (Security
# Considerations; Subscribers).
class Protocol::RevocationTest < Protocol::Test
  test "DELETE {hub}/subscribers/{subject} closes that subject's streams and no others" do
    mine, other, anonymous = follow(topic, token: reader("urn:mine")), follow(topic, token: reader("other")), follow(topic)
    second = follow(topic("b"), token: reader("urn:mine"))
    response = disconnect("urn%3Amine")
    assert_equal [200, "application/json", {"subject" => "urn:mine", "disconnected" => 2}], [response.status, response["content-type"], response.json]
    [mine, second].each do |stream|
      assert_equal [], stream.rest
      assert_kind_of Integer, stream.retry_after, "it is told when it may come back"
    end
    publish(topic, "x")
    [other, anonymous].each { |stream| assert_next "x", stream }
  end

  test "a subject that was disconnected may come back with its token, unless it is revoked" do
    token = reader("urn:back", iat: Time.now.to_i - 10)
    follow(topic, token: token)
    assert_equal 1, disconnect("urn%3Aback").json["disconnected"]
    stream = follow(topic, token: token)
    assert_equal 1, disconnect("urn%3Aback?revoke=1").json["disconnected"]
    assert_equal [], stream.rest
    assert_challenge 401, "invalid_token", subscribe({"match" => topic}, token: token)
    assert_challenge 401, "invalid_token", post({"topic" => topic}, token: token(:publisher, "*", sub: "urn:back", iat: Time.now.to_i - 10)), "also as a publisher"
    assert_challenge 401, "invalid_token", get("#{server.path}/subscriptions", token: subscriber("*", sub: "urn:back", iat: :absent)), "a token of unknown age"
    assert_equal 200, subscribe({"match" => topic}, token: reader("urn:back", iat: Time.now.to_i + 2)).status, "a newer token"
    assert_equal 200, subscribe({"match" => topic}, token: reader("urn:another", iat: Time.now.to_i - 10)).status
  end

  test "a token that was seen is revoked, though its issuer's clock be ahead, or round up" do
    {"seconds" => Time.now.to_i + 3, "fraction" => Time.now.to_f + 3.5}.each do |name, iat|
      subject = "urn:ahead:#{name}"
      tokens = %w[open closed].map { |jti| reader(subject, iat: iat, jti: jti) }
      tokens.map { |token| follow(topic, token: token) }.last.close
      disconnect("#{subject.gsub(":", "%3A")}?revoke=1")
      tokens.each { |token| assert_challenge 401, "invalid_token", subscribe({"match" => topic}, token: token), name }
      assert_equal 200, subscribe({"match" => topic}, token: reader(subject, iat: iat, jti: "new")).status, "one that nobody has seen"
    end
  end

  test "Hub#disconnect does the same from within" do
    stream = follow(topic, token: reader("urn:within"))
    assert_equal 1, hub.disconnect(subject: "urn:within")
    assert_equal [], stream.rest
    assert_equal 0, hub.disconnect(subject: "urn:within")
  end

  test "the end of the subscriptions of who is closed is announced" do
    start
    watcher = subscribe({"match_urlpattern" => "#{server.path}/subscriptions/exact/:m/:s"}, token: subscriber("*"))
    stream = follow(topic, token: reader("urn:gone"))
    hub.disconnect(subject: "urn:gone")
    stream.rest
    document = JSON.parse(watcher.next.data) until document&.values_at("match", "active") == [topic, false]
  end

  test "it needs a publisher's token that grants publishing on that very path, or on everything" do
    path = "#{server.path}/subscribers/urn%3Ax"
    assert_challenge 401, nil, disconnect("urn%3Ax", token: nil)
    assert_challenge 401, "invalid_token", disconnect("urn%3Ax", token: subscriber("*"))
    [token(:publisher, topic), token(:publisher, "#{server.path}/subscribers/urn%3Ay"), token(:publisher, "#{server.path}/subscribers"), token(:publisher, details: [detail("*", actions: ["subscribe"])])].each do |token|
      assert_challenge 403, "insufficient_scope", disconnect("urn%3Ax", token: token)
    end
    [token(:publisher, path), token(:publisher, urlpattern("#{server.path}/subscribers/:subject")), publisher].each { |token| assert_equal 200, disconnect("urn%3Ax", token: token).status }
  end

  test "the subject is the path's last part, decoded; what is none is refused" do
    follow(topic, token: reader("a/b c+d%é"))
    assert_equal({"subject" => "a/b c+d%é", "disconnected" => 1}, disconnect("a%2Fb%20c+d%25%C3%A9").json)
    ["", "%FF"].each { |subject| assert_problem 400, disconnect(subject), subject }
    assert_problem 404, client.request("DELETE", "#{server.path}/subscribers", headers: bearer(publisher))
    %w[GET POST PUT].each { |method| assert_problem 405, client.request(method, "#{server.path}/subscribers/x", headers: bearer(publisher)), method }
  end

  private

  def reader(subject, **claims) = subscriber(topic, sub: subject, **claims)

  def disconnect(subject, token: publisher) = client.request("DELETE", "#{server.path}/subscribers/#{subject}", headers: bearer(token))
end
