# frozen_string_literal: true

require "support/integration"

# What clients in other languages send (test/vectors/clients), byte for byte, to a hub that is configured by the variables
# of an existing Mercure deployment; and whether what they publish reaches a subscriber of 0.x.
class ClientVectorsTest < Integration::Test
  include AccessTokens

  KEYS = {publisher: "the publishers' key of the vectors, 32+", subscriber: "the subscribers' key of the vectors, 32+"}.freeze
  DEPLOYMENT = {"MERCURE_PUBLISHER_JWT_KEY" => KEYS[:publisher], "MERCURE_PUBLISHER_JWT_ALG" => "HS256",
                "MERCURE_SUBSCRIBER_JWT_KEY" => KEYS[:subscriber], "MERCURE_SUBSCRIBER_JWT_ALG" => "HS256"}.freeze

  class << self
    def hub
      @hub ||= RunningHub.new("--no-dev", "--legacy", "--issuer", "https://app.example.com", "--resource-identifier", AccessTokens::HUB_URL, env: DEPLOYMENT)
        .tap { |hub| Minitest.after_run { hub.stop } }
    end
  end

  Dir[File.expand_path("../vectors/clients/*.json", __dir__)].sort.each do |file|
    document = JSON.parse(File.read(file))
    document["vectors"].each do |vector|
      test "#{File.basename(file, ".json")}: #{vector["name"]}" do
        request, expect = vector.values_at("request", "expect")
        (request["method"] == "POST") ? replay_publish(request, expect) : replay_subscribe(request, expect)
      end
    end
  end

  test "a deployment with RS256 and PEM keys in its variables" do
    keys = {publisher: OpenSSL::PKey::RSA.new(2048), subscriber: OpenSSL::PKey::RSA.new(2048)}
    hub = start_hub("--no-dev", "--legacy", env: {
      "MERCURE_PUBLISHER_JWT_KEY" => keys[:publisher].public_to_pem, "MERCURE_PUBLISHER_JWT_ALG" => "RS256",
      "MERCURE_SUBSCRIBER_JWT_KEY" => keys[:subscriber].public_to_pem, "MERCURE_SUBSCRIBER_JWT_ALG" => "RS256"
    })
    tokens = keys.to_h { |role, key| [role, sign({"typ" => "JWT"}, {"mercure" => {"publish" => ["*"], "subscribe" => ["*"]}}, key, "RS256")] }
    stream = follow(hub, token: tokens[:subscriber], topic: "*")
    id = hub.publish([["topic", "a"], ["data", "signed"], ["private", "on"]], token: tokens[:publisher])
    assert_equal [id, "signed"], stream.next.to_h.values_at(:id, :data)
    # A public key is no secret: who signs with it by HS256 must not get in.
    forged = sign({"typ" => "JWT"}, {"mercure" => {"publish" => ["*"]}}, keys[:publisher].public_to_pem, "HS256")
    [forged, tokens[:subscriber]].each do |wrong|
      assert_match(/\A401 /, assert_raises(RuntimeError) { hub.publish([["topic", "a"]], token: wrong) }.message)
    end
  end

  test "without --legacy a token of 0.x opens nothing, and topic= is no matcher" do
    hub = start_hub("--no-dev", "--resource-identifier", AccessTokens::HUB_URL, env: DEPLOYMENT)
    token = legacy_token(:publisher, {"publish" => ["*"]}, key: KEYS[:publisher])
    assert_match(/\A401 /, assert_raises(RuntimeError) { hub.publish([["topic", "a"]], token: token) }.message)
    modern = token(:subscriber, "*", key: KEYS[:subscriber], iss: "hikyaku")
    response = HttpClient.new(hub.port).request("GET", "/.well-known/mercure?topic=a", headers: {"authorization" => "Bearer #{modern}"})
    assert_equal 400, response.status
  end

  private

  def hub = self.class.hub

  def bytes(request)
    "#{request["method"]} #{request["target"]} HTTP/1.1\r\n#{request["headers"].map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n#{request["body"]}".b
  end

  def replay_publish(request, expect)
    reader = everything
    response = HttpClient.new(hub.port).raw(bytes(request), method: "POST")
    assert_equal expect["status"], response.status, response.body
    publish("mark", "mark")
    received = reader.until("mark")
    return assert_empty(received) unless expect["event"]
    assert_equal ["text/plain; charset=utf-8", 1], [response["content-type"], received.size]
    event = received.first
    assert_equal [expect["event"]["type"], expect["event"]["data"]], [event.type, event.data]
    assert_equal expect["event"]["id"] || response.body, event.id
    assert_equal event.id, response.body
  end

  def replay_subscribe(request, expect)
    connection = HttpClient.new(hub.port).connect
    ending(connection)
    connection.write(bytes(request))
    head = connection.head(HttpClient.now + HttpClient::PATIENCE)
    assert_equal expect["status"], head.status
    return unless head.status == 200
    name, value = expect["header"]
    assert_equal value, head[name.downcase] if name
    stream = EventStream.new(connection, head)
    # Unlike anything that the history has; the last one arrives, and shows what did not.
    updates = expect["publish"].map { |update| update.merge("data" => "#{update["data"]} #{rand(2**40)}") }
    updates.each { |update| publish(update["topic"], update["data"], private: update["private"]) }
    last = updates.last["data"]
    received = stream.until(last).map(&:data) << last
    assert_equal updates.filter_map { |update| update["data"] if update["arrives"] }, received & updates.map { |update| update["data"] }
  end

  # A subscriber of 0.x who may read all that is private.
  def everything = follow(hub, token: legacy_token(:subscriber, {"subscribe" => ["*"]}, key: KEYS[:subscriber]), topic: "*")

  def publish(topic, data, private: false)
    fields = [["topic", topic], ["data", data], *([%w[private on]] if private)]
    hub.publish(fields, token: legacy_token(:publisher, {"publish" => ["*"]}, key: KEYS[:publisher]))
  end
end
