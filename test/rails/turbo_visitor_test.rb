# frozen_string_literal: true

require "test_helper"
require "cgi"
require "support/turbo_application"

# A visitor whom the application does not know, and who has no session: the same one for as long as there is a page, so that the
# token of a stream can be renewed, and nobody else.
class TurboVisitorTest < Minitest::Test
  include TurboApplication

  NAME = "hikyaku_visitor"
  NUMBER = "Ab3-_" + "x" * 17

  test "the token is renewed on the live stream, which goes on" do
    first = knock([sign("x")])
    stream = live(first.json)
    renewed = knock([sign("x"), sign("y")], cookie: cookie_of(first))
    assert_equal 204, change(stream, renewed.json).status
    Turbo::StreamsChannel.broadcast_remove_to("y", target: "1")
    assert_equal "1", received(stream)["target"]
    # From one renewal to the next, for as long as the page is there.
    again = knock([sign("x")], cookie: cookie_of(renewed))
    assert_equal 204, change(stream, again.json).status
    assert_equal 1, [first, renewed, again].map { |answer| subject_of(answer) }.uniq.size
  end

  test "nobody else's token is taken there, not of another visitor, and not of a user" do
    stream = live(knock([sign("x")]).json)
    [knock([sign("x")]), knock([sign("x")], cookie: sign_in("7")), knock([sign("x")], cookie: sign_in("nobody"))].each do |answer|
      assert_equal 403, change(stream, answer.json).status, subject_of(answer)
    end
    Turbo::StreamsChannel.broadcast_remove_to("x", target: "1")
    assert_equal "1", received(stream)["target"]
  end

  test "the cookie goes to the door alone, is shown to no script and no other site, and lasts no longer than the token" do
    with_turbo(turbo_token_expires_in: 120) do
      pair, *attributes = knock([sign("x")])["set-cookie"].split("; ")
      assert_match(/\Ahikyaku_visitor=[^=;]+\z/, pair)
      assert_equal ["httponly", "max-age=180", "path=#{DOOR}", "samesite=strict"], attributes.map(&:downcase).sort
    end
    encrypted = knock([sign("x")], x_forwarded_proto: "https", origin: "https://localhost")
    assert_includes encrypted["set-cookie"].downcase.split("; "), "secure"
  end

  test "it is renewed with the token, and ends by itself, whatever the browser does" do
    first = cookie_of(knock([sign("x")]))
    second = cookie_of(with_turbo(turbo_token_expires_in: 601) { knock([sign("x")], cookie: first) })
    refute_equal first, second
    verifier = Rails.application.message_verifier(NAME)
    number = verifier.verified(CGI.unescape(first.split("=").last), purpose: NAME)
    assert_match(/\A.{22}\z/, number)
    expires_at = [first, second].map { |cookie| expiry(CGI.unescape(cookie.split("=").last)) }
    assert_in_delta Time.now.to_f + 660, expires_at.first, 60
    assert_operator expires_at.last, :>, expires_at.first
  end

  test "what was signed for it and is good is taken, and nothing else: forged, expired, another's, for another purpose" do
    assert_equal "anonymous:#{NUMBER}", subject_of(knock([sign("x")], cookie: kept(NUMBER, expires_in: 60)))
    good = signed(NUMBER, expires_in: 60)
    data, digest = good.split("--")
    other = "#{data[0..-2]}#{(data[-1] == "A") ? "B" : "A"}"
    application = ->(verifier, **options) { cookie(verifier.generate(NUMBER, **options)) }
    strange = ActiveSupport::MessageVerifier.new("another application's key")
    token = knock([sign("x")]).json["token"]
    {
      "expired" => kept(NUMBER, expires_in: -1), "expired long ago" => kept(NUMBER, expires_at: Time.at(0)),
      "the number itself" => cookie(NUMBER), "the subject itself" => cookie("anonymous:#{NUMBER}"), "nothing" => cookie(""), "no value" => NAME,
      "another number" => cookie("#{other}--#{digest}"), "another digest" => cookie("#{data}--#{digest.tr("0-9a-f", "1-9a-f0")}"),
      "no digest" => cookie(data), "an empty digest" => cookie("#{data}--"), "twice" => cookie("#{good}--#{good}"), "a null" => cookie("#{good}\0"),
      "no UTF-8" => "#{NAME}=\xFF#{good}", "another application's" => application.call(strange, purpose: NAME),
      "another purpose" => application.call(Rails.application.message_verifier(NAME), purpose: "other"),
      "no purpose" => application.call(Rails.application.message_verifier(NAME)),
      "another verifier" => application.call(Rails.application.message_verifier("other"), purpose: NAME),
      "a stream's name" => cookie(sign(NUMBER)), "a token" => cookie(token), "a user" => kept("user-7", expires_in: 60),
      "a session" => kept("session:#{"0" * 32}", expires_in: 60), "more lines" => kept("#{NUMBER}\nuser-7", expires_in: 60),
      "a list" => kept([NUMBER], expires_in: 60), "null" => kept(nil, expires_in: 60)
    }.each do |attempt, cookie|
      answer = knock([sign("x")], cookie: cookie)
      assert_equal 200, answer.status, attempt
      assert_match(/\Aanonymous:[A-Za-z0-9_-]{22}\z/, subject_of(answer), attempt)
      refute_equal "anonymous:#{NUMBER}", subject_of(answer), attempt
    end
  end

  test "whoever knows a visitor's subject, token and capability, and has a token of their own, takes neither the subject nor the stream" do
    victim = knock([sign("x")])
    stream = live(victim.json)
    subject = subject_of(victim)
    number = subject.delete_prefix("anonymous:")
    [number, subject, victim.json["token"], "#{number}--#{"0" * 64}", "#{[JSON.generate(number)].pack("m0")}--#{"0" * 64}"].each do |value|
      answer = knock([sign("x")], cookie: cookie(value))
      refute_equal subject, subject_of(answer)
      assert_equal 403, change(stream, answer.json).status
    end
  end

  test "who is known to the application, or has a session, is not a visitor, and is given no cookie" do
    visitor = cookie_of(knock([sign("x")]))
    {"7" => /\Auser-7\z/, "nobody" => /\Asession:/}.each do |user, subject|
      answer = knock([sign("x")], cookie: "#{sign_in(user)}; #{visitor}")
      assert_match subject, subject_of(answer)
      assert_nil answer["set-cookie"]
    end
  end

  test "who is granted nothing, or is turned away, is given no cookie" do
    assert_nil knock(["bad"])["set-cookie"]
    Hikyaku::Turbo.authorize { false }
    assert_nil knock([sign("x")])["set-cookie"]
    Hikyaku::Turbo.forget_authorization
    assert_nil knock([sign("x")], origin: "https://evil.example")["set-cookie"]
    assert_nil knock("{")["set-cookie"]
  end

  test "in the log there is the subject, and nothing of the cookie" do
    before = RailsApplication::LOG.string.size
    answer = knock([sign("x")])
    log = RailsApplication::LOG.string[before..]
    assert_includes log, subject_of(answer)
    refute_includes log, cookie_of(answer).split("=").last[0, 40]
  end

  private

  # @return [EventStream] which may be changed, as that of hikyaku.js
  def live(answer)
    query = URI.encode_www_form(match: answer["topics"].values)
    client.stream("GET", "#{HUB}?#{query}", headers: {"host" => "localhost", "authorization" => "Bearer #{answer["token"]}", "hikyaku-stream" => "1"})
      .tap { |stream| @streams << stream }
  end

  def change(stream, answer)
    request("POST", "#{HUB}/streams/#{stream["hikyaku-stream"]}", body: URI.encode_www_form(match: answer["topics"].values),
      authorization: "Bearer #{answer["token"]}", content_type: "application/x-www-form-urlencoded")
  end

  def subject_of(response) = JWT.decode(response.json["token"], nil, false).first["sub"]

  def cookie_of(response) = response["set-cookie"][/\A[^;]+/]

  def cookie(value) = "#{NAME}=#{CGI.escape(value)}"

  def signed(value, **options) = Rails.application.message_verifier(NAME).generate(value, purpose: NAME, **options)

  def kept(...) = cookie(signed(...))

  def expiry(signed) = Time.iso8601(JSON.parse(signed.split("--").first.unpack1("m")).dig("_rails", "exp")).to_f

  # @return [String] the cookie of a session
  def sign_in(user) = request("POST", "/session/#{user}")["set-cookie"][/\A[^;]+/]
end
