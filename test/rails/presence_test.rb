# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "rack/mock"
require "support/running_hub"
require "support/turbo_application"

# Who is here: the names that pages carry, the token that makes them seen, what they are told, and what nobody else is.
class PresenceTest < Minitest::Test
  include TurboApplication

  Presence = Hikyaku::Presence

  def setup
    super
    Hikyaku.web.shutdown
    Hikyaku.reset
    settings = Hikyaku::Railtie.mount.settings
    Hikyaku.start(settings.config.with(subscriptions: true))
    Presence.settings = Presence::Settings.new(presence: true)
    Presence.source = Hikyaku::Railtie::PresenceGlue::Source.new(settings)
  end

  def teardown
    Presence.settings = Presence::Settings.new
    Presence.source = nil
    ApplicationController.class_eval { remove_method(:hikyaku_payload) if private_method_defined?(:hikyaku_payload, false) }
    super
  end

  test "who has the page is here, by user and not by connection" do
    payload { {id: current_user, name: current_user.upcase} if current_user }
    assert_empty Presence.here(@board)
    streams = [appear("7"), appear("7"), appear("8")]
    assert_equal [["7", "7"], ["8", "8"]], here.map { |user| user.values_at("id", "name") }.sort
    streams.shift.close
    streams.shift.close
    await { here.map { |user| user["id"] } == ["8"] }
    assert_empty Presence.here("another")
  end

  test "who comes and who goes is told to whoever may see it, with what the application says of them" do
    payload { {id: current_user, name: "User #{current_user}"} }
    watching = appear("7")
    assert_equal ["7", true], watching.next.then { |event| JSON.parse(event.data) }.then { |document| [document["payload"]["id"], document["active"]] }
    other = appear("8")
    document = JSON.parse(watching.next.data)
    assert_equal ["subscription", Presence.topic(@board.to_gid_param), true, {"id" => "8", "name" => "User 8"}], document.values_at("type", "match", "active", "payload")
    other.close
    assert_equal [false, document["subscriber"]], JSON.parse(watching.next.data).values_at("active", "subscriber")
  end

  test "who follows the stream is not told, and not counted" do
    payload { {id: current_user} }
    following = follow(sign(@board), cookie: cookie("9"))
    appear("7")
    Turbo::StreamsChannel.broadcast_remove_to(@board, target: "x")
    assert_match(/<turbo-stream/, following.next.data)
    assert_equal ["7"], here.map { |user| user["id"] }
  end

  test "a token for following opens neither the events nor the list, nor does a name that is signed for following" do
    payload { {id: current_user} }
    appear("7")
    token = knock([sign(@board)], cookie: cookie("9")).json.fetch("token")
    pattern = Presence.pattern(@board.to_gid_param, Hikyaku.hub.hub_url)
    path = pattern.delete_suffix("/:subscriber")
    assert_equal 403, client.request("GET", path, headers: {"host" => "localhost", "authorization" => "Bearer #{token}"}).status
    spying = client.stream("GET", "#{HUB}?#{URI.encode_www_form(match_urlpattern: pattern, match: "/end")}", headers: {"host" => "localhost", "authorization" => "Bearer #{token}"})
    @streams << spying
    appear("8")
    Hikyaku.publish("/end", "the end")
    assert_empty spying.until("the end")
    assert_equal({"here" => {}, "refused" => {sign(@board) => "invalid"}}, look([sign(@board)]).json)
  end

  test "a name for seeing who is here follows nothing, and one board's shows no other's" do
    answer = knock([seen]).json
    assert_equal [Presence.topic(@board.to_gid_param)], answer["topics"].values
    assert_equal [Presence.pattern(@board.to_gid_param, Hikyaku.hub.hub_url)], answer["patterns"].values
    assert_nil Turbo::StreamsChannel.verified_stream_name(seen)
    other = Presence.pattern("other", Hikyaku.hub.hub_url).delete_suffix("/:subscriber")
    assert_equal 403, client.request("GET", other, headers: {"host" => "localhost", "authorization" => "Bearer #{answer["token"]}"}).status
  end

  test "without `hikyaku_payload` a user is the subject, and nobody's payload can be made up" do
    appear("7")
    assert_equal [{"id" => "user-7"}], here
    forged = client.stream("GET", "#{HUB}?match=#{CGI.escape(Presence.topic(@board.to_gid_param))}", headers: {"host" => "localhost"})
    @streams << forged
    assert_equal 200, forged.status
    assert_equal [{"id" => "user-7"}], here
  end

  test "a payload without an id gets the subject's, and keeps the rest" do
    payload { {name: "Ada"} }
    appear("7")
    assert_equal [{"id" => "user-7", "name" => "Ada"}], here
  end

  test "pages are told who is here, in one answer for several names, and why not of others" do
    payload { {id: current_user} }
    appear("7")
    expired = Hikyaku::Turbo::SignedName.make("x", purpose: Presence::PURPOSE, now: Time.now.to_f - 100_000)
    answer = look([seen, expired, "forged--1"]).json
    subscriber, user = answer["here"].fetch(seen).first
    assert_match(/\Aurn:uuid:/, subscriber)
    assert_equal({"id" => "7"}, user)
    assert_equal({expired => "expired", "forged--1" => "invalid"}, answer["refused"])
    assert_equal "expired", knock([expired]).json["refused"].fetch(expired)
    Hikyaku::Turbo.authorize { |_stream, _request| false }
    assert_equal({seen => "forbidden"}, look([seen]).json["refused"])
  end

  HOSTILE = {
    405 => {method: "GET"}, 403 => {"HTTP_SEC_FETCH_SITE" => "cross-site"}, 415 => {"CONTENT_TYPE" => "text/plain"},
    400 => {input: "{}"}, 413 => {input: JSON.generate(names: Array.new(11, "x"))}
  }.freeze

  test "the window is for pages of the same origin, and for few names" do
    HOSTILE.each do |status, request|
      answer = look([seen], **request)
      assert_equal [status, "application/problem+json"], [answer.status, answer["content-type"]]
    end
  end

  test "names that together have more topics than a token may grant are refused" do
    names = Array.new(60) { |n| Hikyaku::Turbo::SignedName.make("board #{n}", purpose: Presence::PURPOSE) }
    assert_equal 413, knock(names).status
    assert_equal 200, knock(names.first(50)).status
  end

  test "the element carries the name, where to ask, the grace, and what the view says" do
    view = ActionView::Base.empty
    view.extend(Presence::TagHelper)
    with_settings { assert_raises(Hikyaku::ConfigError) { view.hikyaku_presence_tag(@board) } }
    html = with_settings(presence: true, presence_grace: 2.minutes) { view.hikyaku_presence_tag(@board, class: "people", data: {controller: "people"}) { "…" } }
    element = Nokogiri::HTML5.fragment(html).at("hikyaku-presence")
    assert_equal ["people", "people", "120", "/hikyaku/streams", "/hikyaku/presence", "…"], [*element.to_h.values_at("class", "data-controller", "grace", "src", "window"), element.text]
    assert_equal [@board.to_gid_param, nil], Hikyaku::Turbo::SignedName.open(element["signed-stream-name"], purpose: Presence::PURPOSE)
    with_settings(presence: true) { assert_raises(ArgumentError) { view.hikyaku_presence_tag(nil) } }
  end

  test "a hub in another process is asked over HTTP; where it does not say, the error says why" do
    hub = RunningHub.new
    config = Hikyaku::Config.new(publisher_key: Hikyaku::Config::Settings::DEVELOPMENT_SECRET, subscriber_key: Hikyaku::Config::Settings::DEVELOPMENT_SECRET, resource_identifier: hub.url)
    inquiry = Presence::Inquiry.new(hub.url, config)
    assert_empty inquiry.call("board")
    token = Hikyaku::Web::TokenMaker.for(config, role: :subscriber).call(subscribe: ["*"], payload: {id: 7})
    stream = HttpClient.new(hub.port).stream("GET", "#{HUB}?match=#{Presence.topic("board")}", headers: {"authorization" => "Bearer #{token}"})
    assert_equal [{"id" => 7}], inquiry.call("board").map { |document| document["payload"] }
    Presence.source = inquiry
    assert_equal [{"id" => 7}], Presence.here("board")
    hub.stop
    assert_match(/does not say who is here/, assert_raises(Presence::Unknown) { Presence.here("board") }.message)
    silent = RunningHub.new("--no-subscriptions")
    config = config.with(resource_identifier: silent.url)
    assert_match(/--subscriptions/, assert_raises(Presence::Unknown) { Presence::Inquiry.new(silent.url, config).call("board") }.message)
  ensure
    stream&.close
    [hub, silent].compact.each(&:stop)
  end

  test "where nobody knows, the page is told to ask again" do
    Presence.source = ->(_name) { raise Presence::Unknown, "the hub does not answer" }
    answer = look([seen])
    assert_equal [503, "1"], [answer.status, answer["retry-after"]]
    Presence.settings = Presence::Settings.new
    assert_raises(Hikyaku::ConfigError) { Presence.here(@board) }
  end

  WRONG = [{presence: "yes"}, {presence_path: "x"}, {presence_path: "/x?y"}, {presence_grace: -1}, {presence_grace: "5"}, {presence_grace: 3601}].freeze

  test "settings that do not fit stop the boot" do
    WRONG.each { |settings| assert_match(/config\.hikyaku\.presence/, assert_raises(Hikyaku::ConfigError) { Presence::Settings.new(settings) }.message) }
    application = Struct.new(:presence, :turbo, :config)
    on = Presence::Settings.new(presence: true)
    turbo = Struct.new(:on?)
    [application.new(on, turbo.new(false)), application.new(on, turbo.new(true), Struct.new(:subscriptions).new(false))].each do |settings|
      assert_match(/config\.hikyaku\.presence needs/, assert_raises(Hikyaku::ConfigError) { Hikyaku::Railtie::PresenceGlue.settle(settings) }.message)
    end
  end

  private

  def payload(&block) = ApplicationController.class_eval { define_method(:hikyaku_payload, &block).then { private(:hikyaku_payload) } }

  def seen = @seen ||= Hikyaku::Turbo::SignedName.make(@board.to_gid_param, purpose: Presence::PURPOSE)

  def here = Presence.here(@board)

  def cookie(user) = request("POST", "/session/#{user}")["set-cookie"][/\A[^;]+/]

  # What the page of a user does.
  def appear(user)
    answer = knock([seen], cookie: cookie(user)).json
    query = URI.encode_www_form(match: answer["topics"].values, match_urlpattern: answer["patterns"].values)
    client.stream("GET", "#{HUB}?#{query}", headers: {"host" => "localhost", "authorization" => "Bearer #{answer["token"]}"}).tap { |stream| @streams << stream }
  end

  def look(names, method: "POST", **env)
    env = {:method => method, :input => JSON.generate(names: names), "CONTENT_TYPE" => "application/json", "HTTP_HOST" => "localhost", "rack.session" => {}}.merge(env)
    Rack::MockResponse[*Rack::ETag.new(Presence::Window.new).call(Rack::MockRequest.env_for("/hikyaku/presence", env))].tap { |answer| answer.define_singleton_method(:json) { JSON.parse(body) } }
  end

  def with_settings(**settings)
    Hikyaku::Railtie.mount.settings.stub(:presence, Presence::Settings.new(settings)) { yield }
  end

  def await
    deadline = HttpClient.now + HttpClient::PATIENCE
    until yield
      flunk "waited too long" if HttpClient.now > deadline
      sleep 0.02
    end
  end
end
