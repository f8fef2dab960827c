# frozen_string_literal: true

require "support/protocol_test"

# Mercure draft-08, section "Subscription API".
class Protocol::SubscriptionApiTest < Protocol::Test
  def root = "#{server.path}/subscriptions"

  def admin = subscriber("*")

  test "the collection of all subscriptions (Subscription API)" do
    subscribe([["match", topic("a")], ["match_urlpattern", topic(":b")]])
    response = get(root, token: admin)
    assert_equal 200, response.status
    assert_equal "application/json", response["content-type"]
    assert_equal [root, "subscriptions"], response.json.values_at("id", "type")
    documents = mine(response)
    assert_equal [["exact", topic("a")], ["urlpattern", topic(":b")]], documents.map { |document| document.values_at("match_type", "match") }
    documents.each { |document| assert_equal ["subscription", true], document.values_at("type", "active") }
  end

  test "the collection of one matcher, and one subscription, whose document is that of the event (Subscription API)" do
    stream = follow(topic)
    follow(topic)
    follow(topic("other"))
    path = "#{root}/exact/#{URI.encode_www_form_component(topic)}"
    response = get(path, token: admin)
    assert_equal [path, "subscriptions", 2], [*response.json.values_at("id", "type"), response.json["subscriptions"].size]
    assert_equal [topic], response.json["subscriptions"].map { |document| document["match"] }.uniq
    all = subscribe([["match_urlpattern", "#{root}/:t/:m/:s"], ["last_event_id", "earliest"]], token: admin)
    event = JSON.parse(all.next.data) until event && event["match"] == topic
    one = get(event["id"], token: admin)
    assert_equal [200, "application/json", event], [one.status, one["content-type"], one.json]
    stream.close
  end

  test "every endpoint carries the cursor in the Link header (Subscription API)" do
    follow(topic)
    id = publish(topic, "x", id: "urn:\"q\\uoted\":#{rand}")
    document = mine(get(root, token: admin)).first
    [root, File.dirname(document["id"]), document["id"]].each do |path|
      %w[GET HEAD].each do |method|
        response = get(path, token: admin, method: method)
        assert_equal 200, response.status
        assert_equal %(<https://hub.example.com/.well-known/mercure>; rel="mercure"; last-event-id="#{id.gsub(/["\\]/) { |c| "\\#{c}" }}"; type="mercure"; content-type="application/json"), response["link"]
        assert_equal "must-revalidate", response["cache-control"]
        refute_includes response.json.keys, "lastEventID" if method == "GET"
      end
    end
  end

  test "where nothing was dispatched yet, the cursor is earliest (Subscription API)" do
    start
    response = get(root, token: admin)
    assert_includes response["link"], 'last-event-id="earliest"'
    assert_equal [], response.json["subscriptions"]
  end

  test "whoever subscribes from the cursor misses no change (Subscription API)" do
    follow(topic("before"))
    response = get(root, token: admin)
    cursor = response["link"][/last-event-id="([^"]*)"/, 1]
    follow(topic("after"))
    stream = subscribe({"match_urlpattern" => "#{root}/:t/:m/:s", "last_event_id" => cursor}, token: admin)
    assert_equal cursor, stream["mercure-last-event-id"]
    # Streams of other tests may end meanwhile.
    document = JSON.parse(stream.next.data) until document&.values_at("match", "active") == [topic("after"), true]
    assert_equal [topic("before")], mine(response).map { |document| document["match"] }
  end

  test "the entity tag changes with every event, and saves the answer while it does not (Subscription API)" do
    start
    follow(topic)
    id = publish(topic, "x", id: "urn:x y\"%\u00e9")
    response = get(root, token: admin)
    assert_equal '"urn:x%20y%22%25%C3%A9"', response["etag"]
    assert_equal id, response["link"][/last-event-id="((?:[^"\\]|\\.)*)"/, 1].gsub(/\\(.)/, '\1')
    ["", "W/", '"a", "b",  ', '"a",W/'].each do |before|
      again = get(root, token: admin, headers: {"if-none-match" => "#{before}#{response["etag"]}"})
      assert_equal [304, "", response["etag"], response["link"]], [again.status, again.body, again["etag"], again["link"]], before
    end
    assert_equal 304, get(root, token: admin, headers: {"if-none-match" => "*"}).status
    ['"a"', response["etag"].delete('"'), '""', "x", '"a" "b'].each { |tag| assert_equal 200, get(root, token: admin, headers: {"if-none-match" => tag}).status, tag }
    follow(topic("more"))
    assert_equal 200, get(root, token: admin, headers: {"if-none-match" => response["etag"]}).status
    assert_challenge 401, nil, get(root, headers: {"if-none-match" => response["etag"]})
  end

  test "a token is needed, also where reading is anonymous (Subscription API; Error Responses)" do
    [root, "#{root}/exact/a", "#{root}/exact/a/b"].each do |path|
      assert_challenge 401, nil, get(path), path
      assert_challenge 401, "invalid_token", get(path, token: "x"), path
      assert_challenge 403, "insufficient_scope", get(path, token: subscriber(topic)), path
      assert_challenge 403, "insufficient_scope", get(path, token: token(:subscriber, details: [detail("*", actions: ["publish"])])), path
    end
  end

  test "the topic to authorise is the path as it was sent, without the query component (Subscription API)" do
    follow(topic)
    document = mine(get(root, token: admin)).first
    matcher = File.dirname(document["id"])
    grants = {
      root => [200, 403, 403], matcher => [403, 200, 403], document["id"] => [403, 403, 200], "https://hub.example.com#{root}" => [403, 403, 403], root.delete_prefix("/") => [403, 403, 403],
      urlpattern("#{root}*") => [200, 200, 200], urlpattern("#{root}/:t/:m") => [403, 200, 403], urlpattern("#{root}/:t/:m/:s") => [403, 403, 200],
      urlpattern("https://hub.example.com#{root}/*") => [403, 200, 200], urlpattern("https://other.example#{root}/*") => [403, 403, 403], urlpattern("mercure/subscriptions") => [200, 403, 403],
      "*" => [200, 200, 200], "#{root}/" => [403, 403, 403]
    }
    grants.each do |grant, statuses|
      assert_equal statuses, [root, matcher, document["id"]].map { |path| get("#{path}?last_event_id=x&a=b", token: subscriber(grant)).status }, grant.inspect
    end
    assert_equal root, get("#{root}?a=b", token: admin).json["id"]
    assert_equal 403, get(matcher.gsub("%3A", "%3a"), token: subscriber(matcher)).status, "compared byte for byte"
    assert_equal 200, get(matcher.gsub("%3A", "%3a"), token: admin).status
  end

  test "what does not exist is 404, to those who may ask (Subscription API)" do
    follow(topic)
    document = mine(get(root, token: admin)).first
    ["#{document["id"]}x", document["id"].sub("/exact/", "/urlpattern/"), "#{root}/exact/nothing/#{File.basename(document["id"])}", "#{root}/exact/#{URI.encode_www_form_component(topic)}/urn%3Auuid%3A0",
      "#{root}/regexp/a", "#{root}/Exact/a", "#{root}/a", "#{document["id"]}/x", "#{root}/", "#{root}//", "#{root}/exact", "#{root}/exact//x", "#{root}/exact/%FF", "#{root}x",
      "#{document["id"]}/", "#{root}/uri_template/a"].each { |path| assert_problem 404, get(path, token: admin), path }
    assert_challenge 403, "insufficient_scope", get("#{document["id"]}x", token: subscriber(topic))
  end

  test "a path that is no UTF-8, or not percent-encoded, is answered and not failed over (Subscription API)" do
    ["#{root}/exact/\xC3\xA9".b, "#{root}/\xC3\xA9".b].each do |path|
      assert_includes [200, 404], get(path, token: admin).status, path
      assert_challenge 403, "insufficient_scope", get(path, token: subscriber(topic))
    end
    [admin, subscriber(topic)].each { |token| assert_problem 400, get("#{root}/\xff".b, token: token) }
  end

  test "an empty matcher is a matcher: its subscription is where its document says (Subscription; Subscription API)" do
    follow("")
    document = get(root, token: admin).json["subscriptions"].find { |one| one["match"].empty? }
    assert_equal document, get(document["id"], token: admin).json
    assert_includes get("#{root}/exact/", token: admin).json["subscriptions"], document
  end

  test "the collection of a matcher that nobody uses is empty (Subscription API)" do
    path = "#{root}/exact/nobody"
    assert_equal [200, {"id" => path, "type" => "subscriptions", "subscriptions" => []}], get(path, token: admin).then { |response| [response.status, response.json] }
  end

  test "a subscription that has ended is no longer there (Subscription API)" do
    stream = follow(topic)
    document = mine(get(root, token: admin)).first
    stream.close
    eventually { hub.subscriptions(type: "exact", pattern: topic).last.empty? }
    assert_problem 404, get(document["id"], token: admin)
    assert_empty mine(get(root, token: admin))
  end

  test "HEAD answers like GET, without a body (RFC 9110, section 9.3.2)" do
    follow(topic)
    # What other tests have left may end in between, and then the two speak of different events.
    head, whole = nil
    eventually { (head, whole = %w[HEAD GET].map { |method| get(root, token: admin, method: method) }) && head["etag"] == whole["etag"] }
    assert_equal [200, "", whole["content-type"], whole["link"], whole["etag"]], [head.status, head.body, head["content-type"], head["link"], head["etag"]]
  end

  test "only reading is understood" do
    %w[POST PUT DELETE PATCH QUERY].each do |method|
      response = client.request(method, root, headers: bearer(admin))
      assert_problem 405, response, method
      assert_equal %w[GET HEAD OPTIONS], response["allow"].split(", ").sort
    end
  end

  test "paths follow the hub's URL (Subscription API; Discovery)" do
    url = "https://hub.example.com/live/hub"
    start(path: "/live/hub", resource_identifier: url)
    token = subscriber("*", aud: url)
    watcher = subscribe({"match_urlpattern" => "/live/hub/subscriptions/:t/:m/:s"}, token: token)
    document = JSON.parse(watcher.next.data)
    assert document["id"].start_with?("/live/hub/subscriptions/urlpattern/%2Flive%2Fhub%2F")
    assert_equal document, get(document["id"], token: token).json
    assert_equal "/live/hub/subscriptions", get("/live/hub/subscriptions", token: token).json["id"]
    assert_includes get("/live/hub/subscriptions", token: token)["link"], "<#{url}>; rel=\"mercure\""
    assert_problem 404, get("/.well-known/mercure/subscriptions", token: token)
  end

  private

  def mine(response)
    assert_equal 200, response.status, response.body
    response.json["subscriptions"].select { |document| document["match"].start_with?(topic("")) }
  end
end
