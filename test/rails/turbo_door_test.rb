# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "rack/mock"
require "support/turbo_application"

# Where pages ask for their tokens, and who else might.
class TurboDoorTest < Minitest::Test
  include TurboApplication

  test "a page gets the hub, a token for its streams and nothing else, and how long it is good" do
    names = [sign(@board), sign("a b", "c/d")]
    before = Time.now.to_i
    response = knock(names)
    assert_equal [200, "application/json", "no-store"], [response.status, response["content-type"], response["cache-control"]]
    assert_in_delta before, Time.httpdate(response["date"]).to_i, 60
    answer = response.json
    assert_equal %w[expires_at hub refused token topics], answer.keys.sort
    assert_equal HUB, answer["hub"]
    topics = ["/turbo/streams/#{@board.to_gid_param}", "/turbo/streams/a%20b%3Ac%2Fd"]
    assert_equal names.zip(topics).to_h, answer["topics"]
    assert_empty answer["refused"]
    claims = claims_of(answer)
    assert_includes 0..1, claims["exp"] - answer["expires_at"]
    assert_includes (before + 600)..(Time.now.to_i + 600), answer["expires_at"]
    assert_equal [{"type" => "https://mercure.rocks/authorization-detail", "actions" => ["subscribe"], "topics" => topics.map { |topic| {"match" => topic} }}],
      claims["authorization_details"]
  end

  test "a token is for reading these streams: no others, and no writing" do
    answer = knock([sign("mine")]).json
    stream = subscribe(["/turbo/streams/mine", "/turbo/streams/other", "*"], answer["token"])
    Turbo::StreamsChannel.broadcast_remove_to("other", target: "other")
    Turbo::StreamsChannel.broadcast_remove_to("mine", target: "mine")
    assert_equal "mine", received(stream)["target"]
    response = request("POST", HUB, body: "topic=/turbo/streams/mine&data=x", authorization: "Bearer #{answer["token"]}", content_type: "application/x-www-form-urlencoded")
    assert_includes [401, 403], response.status
  end

  test "names are judged one by one: manipulated, expired, for another purpose, signed by others, of other things" do
    good = sign("good")
    data, digest = good.split("--")
    other = ActiveSupport::MessageVerifier.new("other key", digest: "SHA256", serializer: JSON)
    verifier = Turbo.signed_stream_verifier
    invalid = {
      "another digest" => "#{data}--#{digest.tr("0-9a-f", "1-9a-f0")}", "another name" => "#{["\"other\""].pack("m0")}--#{digest}",
      "no digest" => data, "an empty digest" => "#{data}--", "a part of it" => good[0..-2], "more than it" => "#{good}0", "twice" => "#{good}--#{good}",
      "the name itself" => "good", "nothing" => "", "separators" => "----", "a null" => "#{good}\0", "a line end" => "#{good}\n",
      "another's key" => other.generate("good"), "another purpose" => verifier.generate("good", purpose: :attachment),
      "no text" => verifier.generate({"a" => 1}), "a list" => verifier.generate(["good"]), "a number" => verifier.generate(7), "an empty name" => verifier.generate(""),
      "null" => verifier.generate(nil), "too long a name" => verifier.generate("x" * 4000), "snow" => "\u2603--\u2603", "an XML bomb" => "<!DOCTYPE x>" * 50
    }
    expired = {"expired" => verifier.generate("good", expires_in: -1), "expired long ago" => verifier.generate("good", expires_at: Time.at(0))}
    response = knock([good, *invalid.values, *expired.values]).json
    assert_equal({good => "/turbo/streams/good"}, response["topics"])
    invalid.each { |what, signed| assert_equal "invalid", response["refused"][signed], what }
    expired.each { |what, signed| assert_equal "expired", response["refused"][signed], what }
    assert_equal ["/turbo/streams/good"], topics_of(response)
  end

  test "a name expires when it is time" do
    signed = with_turbo(turbo_expires_in: 60) { Hikyaku::Turbo::SignedName.make("x", now: Time.now.to_f - 61) }
    assert_equal({signed => "expired"}, knock([signed]).json["refused"])
    never = with_turbo(turbo_expires_in: nil) { Hikyaku::Turbo::SignedName.make("x", now: 0) }
    assert_equal({never => "/turbo/streams/x"}, knock([never]).json["topics"])
  end

  test "names that turbo-rails signed itself, before the switch, are good" do
    signed = Turbo.signed_stream_verifier.generate("room")
    assert_equal({signed => "/turbo/streams/room"}, knock([signed]).json["topics"])
  end

  test "where no name is good there is no token, and no grant for everything" do
    answer = knock(["bad", "worse"]).json
    assert_nil answer["token"]
    assert_equal({"bad" => "invalid", "worse" => "invalid"}, answer["refused"])
    assert_empty answer["topics"]
  end

  test "the same name twice is one" do
    asked = []
    Hikyaku::Turbo.authorize { |name, _| asked << name }
    assert_equal ["/turbo/streams/x"], topics_of(knock([sign("x")] * 3).json)
    assert_equal ["x"], asked
  end

  test "so many streams as one token may name are granted, however they are called" do
    names = Array.new(100) { |n| format("%03d %s", n, "☃" * 40) }
    signed = names.map { |name| Turbo.signed_stream_verifier.generate(name) }
    answer = knock(signed).json
    assert_equal 100, answer["topics"].values.uniq.size
    assert_operator answer["token"].bytesize, :<, 16_384
    stream = subscribe(answer["topics"].values.first(40), answer["token"])
    Turbo::StreamsChannel.broadcast_remove_to(names.first, target: "first")
    assert_equal "first", received(stream)["target"]
  end

  test "more names, longer bodies and other documents are refused, with a sentence" do
    name = sign("x")
    {
      JSON.generate(names: Array.new(101, &:to_s)) => 413, JSON.generate(names: ["x" * 66_000]) => 413, " " * 65_537 => 413,
      "" => 400, "{" => 400, "null" => 400, "[]" => 400, "7" => 400, JSON.generate([name]) => 400, JSON.generate(names: name) => 400,
      JSON.generate(names: []) => 400, JSON.generate(names: [name, 7]) => 400, JSON.generate(names: [[name]]) => 400, JSON.generate(names: [nil]) => 400,
      JSON.generate(names: {name => 1}) => 400, JSON.generate(name: name) => 400, "{\"names\": [\"\xFF\"]}" => 400, "[" * 60_000 => 400,
      %({"json_class":"File","names":["x"],"names":[]}) => 400, "names[]=#{name}" => 400
    }.each do |body, status|
      response = knock(body)
      assert_equal [status, "application/problem+json"], [response.status, response["content-type"]], body[0, 60]
      assert_operator response.json["detail"].size, :>, 20
    end
  end

  test "a body whose length is not said before is read no further than it may be" do
    chunks = Array.new(20) { "1000\r\n#{" " * 0x1000}\r\n" }.join
    response = client.raw("POST #{DOOR} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n#{chunks}0\r\n\r\n", method: "POST")
    assert_equal 413, response.status
  end

  test "only JSON is read, so that no form of another site comes in" do
    [nil, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp", "text/json"].each do |type|
      response = knock([sign("x")], content_type: type)
      assert_equal 415, response.status, type.inspect
    end
    assert_equal 200, knock([sign("x")], content_type: "application/json; charset=utf-8").status
  end

  test "pages of other origins are turned away" do
    body = [sign("x")]
    {"https://evil.example" => 403, "http://localhost:8080" => 403, "https://localhost" => 403, "null" => 403, "http://localhost.evil.example" => 403,
     "http://shop.example.com" => 403, "" => 403, "http://localhost" => 200, nil => 200}.each do |origin, status|
      assert_equal status, knock(body, origin: origin).status, origin.inspect
    end
    {"cross-site" => 403, "same-site" => 403, "none" => 403, "" => 403, "Same-Origin" => 403, "same-origin" => 200}.each do |site, status|
      assert_equal status, knock(body, sec_fetch_site: site).status, site
    end
    # What the browser itself says of where it is counts more than what a proxy has made of the scheme.
    assert_equal 200, knock(body, sec_fetch_site: "same-origin", origin: "https://localhost").status
    assert_equal 403, knock(body, sec_fetch_site: "cross-site", origin: "http://localhost").status
  end

  test "other sites are not told that they may ask" do
    response = request("OPTIONS", DOOR, origin: "https://evil.example", access_control_request_method: "POST", access_control_request_headers: "content-type")
    assert_equal [405, "POST"], [response.status, response["allow"]]
    assert_empty response.headers.map(&:first).grep(/access-control/)
    %w[GET PUT DELETE HEAD].each { |method| assert_equal 405, request(method, DOOR).status }
    assert_equal 405, request("GET", "#{DOOR}?names[]=x").status
  end

  test "a host that the application does not know is not served" do
    response = client.request("POST", DOOR, body: JSON.generate(names: [sign("x")]), headers: {"host" => "evil.example", "content-type" => "application/json"})
    assert_equal 403, response.status
  end

  test "the token is the user's, whom the application knows by the session" do
    cookie = sign_in("7")
    assert_equal "user-7", claims_of(knock([sign("x")], cookie: cookie).json)["sub"]
    assert_equal "user-8", claims_of(knock([sign("x")], cookie: sign_in("8")).json)["sub"]
  end

  test "without a user it is the session's, the same each time, and does not tell the session's id" do
    cookie = sign_in("nobody")
    subjects = Array.new(2) { claims_of(knock([sign("x")], cookie: cookie).json)["sub"] }
    assert_match(/\Asession:[0-9a-f]{32}\z/, subjects.first)
    refute_includes subjects.first, @session_id
    assert_match(/\A[0-9a-f]{32}\z/, @session_id)
    assert_equal 1, subjects.uniq.size
    refute_equal subjects.first, claims_of(knock([sign("x")], cookie: sign_in("nobody")).json)["sub"]
  end

  test "without a session it is nobody's, another for each visitor, and none is begun" do
    answers = Array.new(2) { knock([sign("x")]) }
    assert_equal 2, answers.map { |answer| claims_of(answer.json)["sub"] }.grep(/\Aanonymous:.{22}\z/).uniq.size
    # By which the visitor is known again: test/rails/turbo_visitor_test.rb.
    assert_equal ["hikyaku_visitor"], answers.first.headers.filter_map { |name, value| value[/\A[^=]+/] if name.casecmp?("set-cookie") }
    assert_equal 200, knock([sign("x")], cookie: "_rails_application_session=forged; x=\xFF").status
  end

  test "the session is not written, so that a late answer takes nothing back" do
    assert_nil knock([sign("x")], cookie: sign_in("7"))["set-cookie"]
  end

  test "the application decides who may follow what, with the request and as a controller would" do
    asked = []
    Hikyaku::Turbo.authorize do |name, request|
      asked << [name, request.class, self.class]
      current_user == "7" && name != "secret"
    end
    names = %w[open secret].map { |name| sign(name) }
    answer = knock(names, cookie: sign_in("7")).json
    assert_equal [{names[0] => "/turbo/streams/open"}, {names[1] => "forbidden"}], answer.values_at("topics", "refused")
    assert_equal ["/turbo/streams/open"], topics_of(answer)
    assert_equal [["open", ActionDispatch::Request, ApplicationController], ["secret", ActionDispatch::Request, ApplicationController]], asked
    assert_equal %w[forbidden forbidden], knock(names, cookie: sign_in("8")).json["refused"].values
    assert_equal %w[forbidden forbidden], knock(names).json["refused"].values
  end

  test "it is asked each time, so that what was allowed need not stay so" do
    allowed = true
    Hikyaku::Turbo.authorize { allowed }
    name = sign("x")
    assert_equal [name], knock([name]).json["topics"].keys
    allowed = false
    assert_equal({name => "forbidden"}, knock([name]).json["refused"])
  end

  test "it is not asked of names that are not good" do
    Hikyaku::Turbo.authorize { flunk "asked" }
    assert_equal({"bad" => "invalid"}, knock(["bad"]).json["refused"])
  end

  test "whatever can be called may decide; what fails lets nobody in" do
    policy = Object.new
    def policy.call(name, request) = name == "x" && request.post?
    [->(name, request) { name == "x" && request.post? }, policy].each do |decision|
      Hikyaku::Turbo.authorize(decision)
      assert_equal [{sign("x") => "/turbo/streams/x"}, {sign("y") => "forbidden"}], knock([sign("x"), sign("y")]).json.values_at("topics", "refused")
    end
    Hikyaku::Turbo.forget_authorization
    with_turbo(turbo_authorize: ->(name, _) { name == "y" }) { assert_equal ["x"], knock([sign("x"), sign("y")]).json["refused"].keys.map { |signed| Turbo::StreamsChannel.verified_stream_name(signed) } }
    Hikyaku::Turbo.authorize { raise "broken" }
    assert_equal 500, knock([sign("x")]).status
    Hikyaku::Turbo.authorize { |name, _| name == "y" || raise("broken") }
    assert_equal [[sign("x")], {sign("y") => "/turbo/streams/y"}, {}], knock([sign("x"), sign("y")]).json.values_at("failed", "topics", "refused")
    assert_raises(ArgumentError) { Hikyaku::Turbo.authorize }
    assert_raises(ArgumentError) { Hikyaku::Turbo.authorize("yes") }
  end

  test "it gets as many values as it names" do
    given = nil
    two = Object.new
    two.define_singleton_method(:call) { |*values| given = values }
    of_two = Object.new
    of_two.define_singleton_method(:call) { |name, request| given = [name, request] }
    of_three = Object.new
    of_three.define_singleton_method(:call) { |name, request, params = nil| given = [name, request, params] }
    methods = [of_two, of_three].map { |object| object.method(:call) }
    {->(*values) { given = values } => 2, ->(name, request) { given = [name, request] } => 2, ->(name, request, params) { given = [name, request, params] } => 3,
     proc { |name, request, params| given = [name, request, params] } => 3, two => 2, of_two => 2, of_three => 3, methods[0] => 2, methods[1] => 3}.each do |decision, count|
      Hikyaku::Turbo.authorize(decision)
      assert_equal 1, knock([sign("x")]).json["topics"].size
      assert_equal ["x", ActionDispatch::Request, *(ActiveSupport::HashWithIndifferentAccess if count == 3)], [given.first, *given.drop(1).map(&:class)]
    end
  end

  test "it may ask for the parameters, as controllers do" do
    Hikyaku::Turbo.authorize { |_, request| params[:names].is_a?(Array) && request.params["names"].size == 1 }
    assert_equal 1, knock([sign("x")]).json["topics"].size
    # Servers need not let anybody read a body twice.
    once = Struct.new(:text) { def read(*size) = text.read(*size) }
    env = Rack::MockRequest.env_for("http://localhost#{DOOR}", :method => "POST", "HTTP_HOST" => "localhost", "CONTENT_TYPE" => "application/json")
    body = JSON.generate(names: [sign("x")])
    response = Rack::MockResponse[*Rails.application.call(env.merge("rack.input" => once.new(StringIO.new(body)), "CONTENT_LENGTH" => body.bytesize.to_s))]
    assert_equal [200, 1], [response.status, JSON.parse(response.body)["topics"].size]
  end

  test "who is disconnected and revoked does not come back with the token that it has" do
    cookie = sign_in("7")
    answer = knock([sign("x")], cookie: cookie).json
    stream = subscribe(answer["topics"].values, answer["token"])
    assert_equal 1, Hikyaku.disconnect(subject: "user-7", revoke: true)
    assert_empty stream.rest
    # Of the second in which it was revoked a token may be a new one.
    sleep 0.01 until Time.now.to_i > claims_of(answer)["iat"]
    Hikyaku.disconnect(subject: "user-7", revoke: true)
    assert_equal 401, subscribe(answer["topics"].values, answer["token"]).status
  end

  test "who signs out while it is asked who may follow has a token that opens nothing" do
    Hikyaku::Turbo.authorize { Hikyaku.disconnect(subject: "user-7", revoke: true).zero? }
    answer = knock([sign("x")], cookie: sign_in("7")).json
    assert_equal 1, answer["topics"].size
    assert_equal 401, subscribe(answer["topics"].values, answer["token"]).status
    Hikyaku::Turbo.forget_authorization
    assert_equal 1, follow(sign("x"), cookie: sign_in("7")).then { Hikyaku.disconnect(subject: "user-7") }
  end

  test "a name that was signed before the switch is good for ever, until the application signs with another key" do
    before = Turbo.signed_stream_verifier.generate("good")
    Time.stub(:now, Time.now + 10 * 365 * 86_400) { assert_equal ["good", nil], Hikyaku::Turbo::SignedName.open(before) }
    assert_equal [before], knock([before]).json["topics"].keys
    with_another_key { assert_equal({before => "invalid"}, knock([before]).json["refused"]) }
  end

  test "a token that has expired opens nothing" do
    answer = with_turbo(turbo_token_expires_in: 1) { knock([sign("x")]).json }
    # Clocks may differ a little: a token that has just expired is not refused, but its stream ends at once.
    2.times { assert_empty subscribe(answer["topics"].values, answer["token"]).rest }
  end

  test "what was granted is told to whoever listens, without names and tokens" do
    events = []
    listener = ActiveSupport::Notifications.subscribe("streams.hikyaku") { |event| events << event.payload }
    before = RailsApplication::LOG.string.size
    answer = knock([sign("one"), sign("two"), "bad"], cookie: sign_in("7")).json
    assert_equal [{granted: 2, refused: {"invalid" => 1}, subject: "user-7"}], events
    log = RailsApplication::LOG.string[before..]
    assert_match(/2 streams granted to user-7, 1 invalid/, log)
    refute_includes log, answer["token"]
    assert_equal claims_of(knock([sign("one")]).json)["sub"], events.last[:subject]
  ensure
    ActiveSupport::Notifications.unsubscribe(listener)
  end

  private

  # @return [String] the cookie of a session
  def sign_in(user)
    response = request("POST", "/session/#{user}")
    @session_id = response.body
    response["set-cookie"][/\A[^;]+/]
  end

  # As with config.turbo.signed_stream_verifier_key.
  def with_another_key
    before = Turbo.signed_stream_verifier
    Turbo.instance_variable_set(:@signed_stream_verifier, ActiveSupport::MessageVerifier.new("another key", digest: "SHA256", serializer: JSON))
    yield
  ensure
    Turbo.instance_variable_set(:@signed_stream_verifier, before)
  end

  def claims_of(answer) = JWT.decode(answer["token"], nil, false).first

  def topics_of(answer) = claims_of(answer)["authorization_details"].flat_map { |detail| detail["topics"] }.map { |topic| topic["match"] }
end
