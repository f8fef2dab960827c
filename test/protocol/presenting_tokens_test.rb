# frozen_string_literal: true

require "support/protocol_test"

# Mercure draft-08, sections "Presenting the Access Token" and "Error Responses".
class Protocol::PresentingTokensTest < Protocol::Test
  COOKIE = "__Secure-mercure_access_token"
  OWN = {"origin" => "https://hub.example.com"}.freeze

  test "a bearer token in the Authorization header, the scheme in any case (Authorization HTTP Header)" do
    ["Bearer", "bearer", "BEARER", "BeArEr"].each do |scheme|
      assert_equal 200, post({"topic" => topic}, token: nil, headers: {"authorization" => "#{scheme} #{publisher}"}).status, scheme
      stream = private_stream("authorization" => "#{scheme} #{reader}")
      assert_next "secret", stream, scheme
      stream.close
    end
  end

  test "a token in the cookie, where there is no header (Cookie)" do
    assert_equal 200, post({"topic" => topic}, token: nil, headers: OWN.merge(cookie(publisher))).status
    ["#{COOKIE}=#{reader}", "a=b; #{COOKIE}=#{reader}; c=d", "#{COOKIE}=\"#{reader}\"", "a=b;#{COOKIE}=#{reader}"].each do |value|
      stream = private_stream("cookie" => value)
      assert_next "secret", stream, value
      stream.close
    end
  end

  test "a cookie of another name, or of 0.x, is no token (Cookie)" do
    ["mercureAuthorization", "mercure_access_token", "#{COOKIE}2", "x#{COOKIE}", COOKIE.downcase].each do |name|
      assert_challenge 401, nil, post({"topic" => topic}, token: nil, headers: OWN.merge("cookie" => "#{name}=#{publisher}")), name
    end
  end

  test "the cookie's name is a setting (Cookie)" do
    start(cookie_name: "my_token")
    assert_equal 200, post({"topic" => topic}, token: nil, headers: OWN.merge("cookie" => "my_token=#{publisher}")).status
    assert_challenge 401, nil, post({"topic" => topic}, token: nil, headers: OWN.merge(cookie(publisher)))
  end

  test "the header goes before the cookie, which is not even looked at (Presenting the Access Token)" do
    bad = {"cookie" => "#{COOKIE}=not.a.token"}
    assert_equal 200, post({"topic" => topic}, headers: bad).status
    assert_next "secret", private_stream(bad.merge("authorization" => "Bearer #{reader}"))
    good = OWN.merge(cookie(publisher))
    assert_challenge 401, "invalid_token", post({"topic" => topic}, token: "not.a.token", headers: good)
    assert_challenge 403, "insufficient_scope", post({"topic" => topic}, token: token(:publisher, topic("other")), headers: good)
    assert_challenge 400, "invalid_request", post({"topic" => topic}, token: nil, headers: good.merge("authorization" => "Basic eDp5"))
  end

  test "a token in the query component is not accepted, and not an error either (Presenting the Access Token)" do
    %w[access_token authorization token].each do |name|
      assert_challenge 401, nil, client.request("POST", "#{server.path}?#{name}=#{publisher}",
        headers: {"content-type" => "application/x-www-form-urlencoded"}, body: form("topic" => topic)), name
      assert_challenge 401, nil, post({"topic" => topic, name => publisher}, token: nil), name
      stream = subscribe("match" => topic, name => reader)
      publish(topic, "secret", private: "on")
      publish(topic, "public")
      assert_next "public", stream, name
    end
  end

  test "no token where one is needed: 401 and a challenge without an error code (Error Responses)" do
    start(anonymous: false)
    [post({"topic" => topic}, token: nil), subscribe("match" => topic), get("#{server.path}/subscriptions"),
      get("#{server.path}?match=a", method: "HEAD").tap { |response| response.body = '{"status":401,"title":"Unauthorized","detail":"."}' },
      subscribe({}, method: "QUERY", body: {"match" => topic})].each_with_index do |response, i|
      assert_challenge 401, nil, response, i
      refute_match(/error|scope/, response["www-authenticate"])
    end
  end

  test "a token that is not valid: 401 invalid_token, the same words whatever is wrong (Error Responses)" do
    bad = ["x", "a.b.c", reader[0..-2], "#{reader}x", token(:subscriber, topic, exp: 1), token(:subscriber, topic, aud: "x"), token(:subscriber, "a\nb"),
      token(:subscriber, topic, key: "k" * 40), token(:subscriber, topic, iss: "https://nobody.example")]
    answers = bad.map do |token|
      assert_challenge 401, "invalid_token", subscribe({"match" => topic}, token: token)
      assert_challenge 401, "invalid_token", get("#{server.path}/subscriptions", token: token)
      response = post({"topic" => topic}, token: token)
      assert_challenge 401, "invalid_token", response
      [response.body, response["www-authenticate"]]
    end
    assert_equal 1, answers.uniq.size, "why a token is refused is not told"
  end

  test "a valid token that does not permit it: 403 insufficient_scope (Error Responses)" do
    assert_challenge 403, "insufficient_scope", post({"topic" => topic}, token: token(:publisher, topic("other")))
    assert_challenge 403, "insufficient_scope", get("#{server.path}/subscriptions", token: reader)
    assert_challenge 403, "insufficient_scope", client.request("DELETE", "#{server.path}/subscribers/user", headers: bearer(token(:publisher, topic)))
  end

  test "a token that is presented in no way that is known: 400 invalid_request (Error Responses)" do
    ["Basic dXNlcjpwYXNz", "Bearer", "Bearer ", "Bearer  ", reader, "Bearer#{reader}", "Bearer #{reader} x", "Bearer #{reader}, Bearer #{reader}", "Token #{reader}",
      "Bearer #{reader}\t#{reader}", "Bearer \u00e9", "Bearer a;b", "bearer=#{reader}", "DPoP #{reader}", ","].each do |header|
      response = client.request("POST", server.path, headers: {"authorization" => header, "content-type" => "application/x-www-form-urlencoded"}, body: "topic=a")
      assert_challenge 400, "invalid_request", response, header
      assert_challenge 400, "invalid_request", subscribe({"match" => topic}, headers: {"authorization" => header}), header
    end
  end

  test "two Authorization headers are no request that can be understood" do
    assert_challenge 400, "invalid_request", post({"topic" => topic}, token: nil, headers: {"authorization" => ["Bearer #{publisher}", "Bearer #{publisher}"]})
  end

  test "an empty Authorization header is refused rather than passed over" do
    assert_challenge 400, "invalid_request", post({"topic" => topic}, token: nil, headers: {"authorization" => ""})
  end

  test "what is wrong with a request apart from its token has no challenge (Error Responses)" do
    [post("data=x"), subscribe("match_foo=x"), subscribe(""), post("topic" => "/.well-known/mercure/x"), client.request("PUT", server.path), get("/nowhere")].each do |response|
      assert_nil response["www-authenticate"]
      assert_equal "application/problem+json", response["content-type"]
    end
  end

  test "an empty cookie is a token that is not valid, or none: never a permission" do
    response = post({"topic" => topic}, token: nil, headers: OWN.merge("cookie" => "#{COOKIE}="))
    assert_equal 401, response.status
    assert_match(/\ABearer/, response["www-authenticate"])
  end

  test "of two cookies of the name the first counts (RFC 6265, section 4.2.2)" do
    assert_equal 200, post({"topic" => topic}, token: nil, headers: OWN.merge("cookie" => "#{COOKIE}=#{publisher}; #{COOKIE}=x")).status
    assert_challenge 401, "invalid_token", post({"topic" => topic}, token: nil, headers: OWN.merge("cookie" => "#{COOKIE}=x; #{COOKIE}=#{publisher}"))
  end

  test "no answer tells the token, and none may be cached" do
    secret = token(:publisher, topic("other"))
    [post({"topic" => topic}, token: secret), post({"topic" => topic}, token: "#{secret}x")].each do |response|
      refute_includes response.body + response.headers.to_s, secret.split(".").last
      assert_equal "no-store", response["cache-control"]
    end
  end

  private

  def reader = @reader ||= subscriber(topic)

  def cookie(token) = {"cookie" => "#{COOKIE}=#{token}"}

  # A stream to which a private update was published.
  def private_stream(headers)
    stream = subscribe({"match" => topic}, headers: headers)
    assert_equal 200, stream.status
    publish(topic, "secret", private: "on")
    publish(topic, "public")
    stream
  end
end
