# frozen_string_literal: true

require "test_helper"
require "rack"
require "rack/lint"
require "rack/mock_request"
require "hikyaku/client/publisher"
require "hikyaku/config"
require "hikyaku/web"
require "support/access_tokens"

# Repeated publishes, without a server round the application.
class WebPublishTest < Minitest::Test
  PATH = "/.well-known/mercure"

  def new_web
    Hikyaku::Web.new(Hikyaku::Config.new(issuer: AccessTokens::ISSUER, resource_identifier: AccessTokens::HUB_URL,
      publisher_key: AccessTokens::SECRETS[:publisher], subscriber_key: AccessTokens::SECRETS[:subscriber]))
  end

  def setup = @web = new_web

  def publish(data = "x", subject: "user-1", web: @web, params: {topic: "/a", data: data}, **headers)
    token = AccessTokens.token(:publisher, "*", sub: subject)
    Rack::MockRequest.new(Rack::Lint.new(web)).post(PATH, :params => params,
      "CONTENT_TYPE" => "application/x-www-form-urlencoded", "HTTP_AUTHORIZATION" => "Bearer #{token}",
      **headers.transform_keys { |name| "HTTP_#{name.to_s.upcase}" })
  end

  test "a repeated request gets the first one's id and publishes nothing" do
    first, second = publish(idempotency_key: "k1"), publish(idempotency_key: "k1")
    assert_equal [200, first.body], [second.status, second.body]
    assert_equal 1, @web.hub.stats[:publishes]
  end

  test "without a key the same request publishes again" do
    refute_equal publish.body, publish.body
    assert_equal 2, @web.hub.stats[:publishes]
  end

  test "what is published in the process itself is no larger than a request may be, and the message names the setting" do
    publisher = Hikyaku::Publisher.new(@web.hub)
    limit = @web.config.max_request_bytes
    assert publisher.publish("/a", "x" * (limit - 2))
    error = assert_raises(Hikyaku::LimitExceeded) { publisher.publish("/a", "x" * (limit - 1)) }
    assert_equal "the update has #{limit + 1} bytes, more than the #{limit} that max_request_bytes allows", error.message
    assert_equal 1, @web.hub.stats[:publishes]
  end

  test "an id and a type count for the size of what the process publishes to itself" do
    publisher = Hikyaku::Publisher.new(@web.hub)
    limit = @web.config.max_request_bytes
    %i[id type].each do |field|
      assert_raises(Hikyaku::LimitExceeded, field.to_s) { publisher.publish("/a", "", field => "x" * (limit - 1)) }
    end
    assert_equal 0, @web.hub.stats[:publishes]
  end

  test "what is published in the process itself has the limits of a request, and the words" do
    publisher = Hikyaku::Publisher.new(@web.hub)
    config = @web.config
    {max_topics: {topics: Array.new(config.max_topics + 1) { |n| "/#{n}" }}, max_id_bytes: {topics: "/a", id: "i" * (config.max_id_bytes + 1)},
     max_type_bytes: {topics: "/a", type: "t" * (config.max_type_bytes + 1)}}.each do |setting, update|
      error = assert_raises(Hikyaku::LimitExceeded, setting.to_s) { publisher.publish(**update) }
      assert_match(/more than the #{config.public_send(setting)} that #{setting} allows\z/, error.message)
      answer = publish(params: URI.encode_www_form(update.transform_keys({topics: :topic})))
      assert_equal [413, error.message], [answer.status, JSON.parse(answer.body)["detail"]]
    end
    assert_equal 0, @web.hub.stats[:publishes]
  end

  test "a key belongs to whoever used it first" do
    refute_equal publish(idempotency_key: "k1").body, publish(idempotency_key: "k1", subject: "user-2").body
  end

  test "a key with another update is refused" do
    publish("x", idempotency_key: "k1")
    response = publish("y", idempotency_key: "k1")
    assert_equal [422, "application/problem+json"], [response.status, response["content-type"]]
    assert_equal 1, @web.hub.stats[:publishes]
  end

  test "a key that is empty or too long is refused" do
    assert_equal [400, 400, 200], ["", "k" * 256, "k" * 255].map { |key| publish(idempotency_key: key).status }
  end

  test "a request in doubt is not published by a hub that was restarted since" do
    memory = publish(idempotency_key: "k1")["hikyaku-idempotency"]
    assert_equal 200, publish(idempotency_key: "k1", hikyaku_idempotency: memory).status
    restarted = new_web
    response = publish(web: restarted, idempotency_key: "k1", hikyaku_idempotency: memory)
    assert_equal 412, response.status
    assert_equal 0, restarted.hub.stats[:publishes]
    assert_equal 200, publish(web: restarted, idempotency_key: "k2").status
  end
end
