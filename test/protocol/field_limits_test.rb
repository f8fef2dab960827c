# frozen_string_literal: true

require "support/protocol_test"

# What a request may cost before it is known who sends it: the number of fields of a form or a query component (Mercure
# draft-08, section "Resource Limits"), and what is refused without a look at the body.
class Protocol::FieldLimitsTest < Protocol::Test
  settings max_topics: 3, max_matchers: 4
  # 15000 beyond the larger of the two.
  MOST = 15_004

  def padded(text, fields) = "#{text}#{"&a" * (fields - text.count("&") - 1)}"

  def change(stream, body, **more)
    client.request("POST", "#{server.path}/streams/#{stream["hikyaku-stream"]}", headers: {"content-type" => "application/x-www-form-urlencoded"}.merge(more), body: body)
  end

  test "a body may have so many fields, and is refused beyond, whatever they are" do
    stream = follow(topic, headers: {"hikyaku-stream" => "1"})
    assert_equal 200, post(padded("topic=a", MOST)).status
    assert_equal 200, subscribe({}, method: "QUERY", body: padded("match=a", MOST)).status
    assert_equal 204, change(stream, padded("match=a", MOST)).status
    ["topic=a", "match=a", "topic=a&match=a&&"].each do |text|
      2.times { assert_includes assert_problem(413, post(padded(text, MOST + 1))), "#{MOST} fields" }
      assert_problem 413, subscribe({}, method: "QUERY", body: padded(text, MOST + 1))
      assert_problem 413, subscribe({"match" => "a"}, method: "QUERY", body: padded(text, MOST + 1))
      assert_problem 413, change(stream, padded(text, MOST + 1))
    end
    assert_problem 413, post("&" * 100_000)
    assert_problem 413, post("a&" * 400_000)
  end

  test "who may not ask is told so before the body is parsed" do
    start(anonymous: false)
    body = "a&" * 400_000
    assert_challenge 401, nil, subscribe({}, method: "QUERY", body: body)
    assert_challenge 401, nil, post(body, token: nil)
    assert_challenge 401, "invalid_token", post(body, token: "x")
    assert_challenge 401, nil, client.request("POST", "#{server.path}/streams/a", headers: {"content-type" => "application/x-www-form-urlencoded"}, body: body)
    assert_challenge 401, nil, subscribe({}, method: "QUERY", body: "\xFF", headers: {"content-type" => "text/plain"})
  end

  test "a client of 0.x is told what the hub takes, and how it would understand what was sent" do
    ["topic=a", "topic=a&topic=b&lastEventID=x", "x=y&topic="].each do |query|
      [subscribe(query), subscribe({}, method: "QUERY", body: query)].each do |response|
        detail = assert_problem(400, response, query)
        ["match", "--legacy"].each { |word| assert_includes detail, word }
      end
    end
    start(anonymous: false)
    [nil, "x", legacy_token(:subscriber, {"subscribe" => ["*"]})].each do |token|
      [{}, {"last-event-id" => "x"}].each do |headers|
        detail = assert_problem(400, subscribe("topic=a", token: token, headers: headers))
        ["match", "--legacy"].each { |word| assert_includes detail, word }
      end
    end
    assert_challenge 401, "invalid_token", subscribe("topic=a&match=a", token: "x")
    assert_challenge 401, "invalid_token", subscribe("x=y", token: "x")
    assert_includes assert_challenge_detail(subscribe("match" => "a", "authorization" => subscriber("a"))), "--legacy"
    refute_includes assert_challenge_detail(subscribe("match" => "a")), "--legacy"
  end

  test "a path with an invalid escape is refused" do
    ["%zz", "%z", "%%", "%4", "%4g", "a%"].each do |text|
      ["/subscriptions/exact/#{text}", "/subscriptions/urlpattern/a/#{text}", "/subscriptions/#{text}", "/subscribers/#{text}", "/streams/#{text}", "/#{text}"].each do |path|
        %w[GET POST DELETE].each { |method| assert_problem 400, get("#{server.path}#{path}", method: method, token: subscriber("*")), "#{method} #{path}" }
      end
    end
  end

  test "so is one that does not decode to text" do
    %w[%FF %C3 %ED%A0%80 %00 a%00b %C0%80].each do |text|
      ["exact/#{text}", "urlpattern/#{text}", "exact/a/#{text}", text].each { |path| assert_problem 404, get("#{server.path}/subscriptions/#{path}", token: subscriber("*")), path }
      assert_problem 400, get("#{server.path}/subscribers/#{text}", method: "DELETE", token: publisher), text
    end
    assert_equal 200, get("#{server.path}/subscriptions/exact/%25zz", token: subscriber("*")).status
    assert_equal 200, get("#{server.path}/subscriptions/exact/%C3%A9", token: subscriber("*")).status
  end

  def assert_challenge_detail(response)
    assert_challenge 401, nil, response
    response.json["detail"]
  end
end
