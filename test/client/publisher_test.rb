# frozen_string_literal: true

require "test_helper"
require "hikyaku/client/publisher"
require "support/scripted_server"

# What is sent. What is sent again stands in test/client/publisher/remote_hub_test.rb.
class PublisherTest < Minitest::Test
  ANSWER = ->(peer) { peer.answer_all(200, "#id", "content-type" => "text/plain; charset=utf-8") }

  def serve(*script, **options)
    @server = ScriptedServer.new(*script, **options)
  end

  def publisher(target = @server.url, **settings)
    (@publishers ||= []) << Hikyaku::Publisher.new(target, **settings)
    @publishers.last
  end

  def teardown
    @publishers&.each(&:close)
    @server&.close
  end

  # Mercure draft-08, section "Publication".
  test "every field of an update travels as a form, and the id comes back" do
    serve(ANSWER)
    id = publisher.publish(["https://example.com/本", "b&c=d"], "é\r\n+ %", private: true, id: "urn:x:1", type: "kind", retry_after: 1500)

    assert_equal "#id", id
    request = @server.requests.first
    assert_equal ["POST", "/.well-known/mercure"], [request.verb, request.target]
    assert_equal "application/x-www-form-urlencoded", request["content-type"]
    assert_equal [["topic", "https://example.com/本"], ["topic", "b&c=d"], ["data", "é\r\n+ %"], ["private", "on"], ["id", "urn:x:1"],
      ["type", "kind"], ["retry", "1500"]], request.form
  end

  test "what was not given is not sent" do
    serve(ANSWER)
    publisher.publish("a")
    publisher.publish("a", private: false, id: nil)
    assert_equal [[["topic", "a"]]] * 2, @server.requests.map(&:form)
  end

  test "topics and data can be named" do
    serve(ANSWER)
    publisher.publish(topics: "a", data: "1")
    publisher.publish(topics: %w[a b], data: "2")
    assert_equal [[%w[topic a], %w[data 1]], [%w[topic a], %w[topic b], %w[data 2]]], @server.requests.map(&:form)
  end

  test "anything but a String becomes JSON" do
    serve(ANSWER)
    publisher.publish("a", {title: "Dune", pages: [1]})
    publisher.publish("a", [nil, 1.5])
    publisher.publish("a", nil)
    assert_equal ['{"title":"Dune","pages":[1]}', "[null,1.5]", "null"], @server.requests.map { |request| request.form.last[1] }
  end

  test "text in another encoding is sent as UTF-8, bytes without one as they are" do
    serve(ANSWER)
    publisher.publish((+"caf\xE9").force_encoding("ISO-8859-1"), "日本".encode("Shift_JIS"))
    publisher.publish("a", "\xE6\x97\xA5".b)
    assert_equal [%w[topic café], %w[data 日本]], @server.requests[0].form
    assert_equal %w[data 日], @server.requests[1].form.last
  end

  test "obvious misuse raises and sends nothing" do
    serve(ANSWER)
    hub = publisher
    [[], [[]], [nil], [:a], [["a", 1]]].each { |arguments| assert_raises(ArgumentError) { hub.publish(*arguments) } }
    ["", "a b", "a\r\nx: y", "é", "a" * 256].each { |key| assert_raises(ArgumentError) { hub.publish("a", idempotency_key: key) } }
    assert_raises(Hikyaku::InvalidUpdate) { hub.publish("a", (+"\xFF").force_encoding("Shift_JIS")) }
    assert_empty @server.requests
  end

  test "every publish carries an Idempotency-Key of its own, or the one that is given" do
    serve(ANSWER)
    2.times { publisher.publish("a") }
    publisher.publish("a", idempotency_key: "order-7")
    keys = @server.requests.map { |request| request["idempotency-key"] }
    assert_equal 3, keys.uniq.size
    assert_match(/\A\h{8}-\h{4}-4\h{3}-[89ab]\h{3}-\h{12}\z/, keys.first)
    assert_equal "order-7", keys.last
  end

  test "a hub that does not say the id gives back the one that was asked for" do
    serve(->(peer) { peer.answer_all(204, "", "content-length" => nil) })
    assert_equal "urn:x", publisher.publish("a", id: "urn:x")
    assert_nil publisher.publish("a")
  end

  test "the URL may have a query and a port; without a path it is the well-known one" do
    serve(ANSWER, path: "")
    publisher.publish("a")
    publisher("#{@server.url}/hub?tenant=7").publish("a")
    assert_equal ["/.well-known/mercure", "/hub?tenant=7"], @server.requests.map(&:target)
    assert_equal ["127.0.0.1:#{@server.port}"] * 2, @server.requests.map { |request| request["host"] }
  end

  test "a Unix socket is reached, at the well-known path or at another" do
    Dir.mktmpdir do |folder|
      socket = "#{folder}/hub.sock"
      serve(ANSWER, unix: socket)
      publisher("unix:#{socket}").publish("a")
      publisher("unix:#{socket}:/custom?x=1").publish("a")
      publisher("unix://#{socket}").publish("a")
      assert_equal ["/.well-known/mercure", "/custom?x=1", "/.well-known/mercure"], @server.requests.map(&:target)
      assert_equal ["localhost"], @server.requests.map { |request| request["host"] }.uniq
      assert_equal 3, @server.connections
    end
  end

  test "a hub in this process gets the update itself" do
    hub = Class.new do
      attr_reader :seen

      def publish(update, idempotency_key: nil)
        (@seen ||= []) << [update, idempotency_key]
        "#1"
      end
    end.new
    local = publisher(hub)
    assert_equal "#1", local.publish("a", {n: 1}, private: true, id: "urn:x", type: "t", retry_after: 5, idempotency_key: "k")
    local.publish("b")
    update, key = hub.seen.first
    assert_equal [["a"], '{"n":1}', true, "urn:x", "t", 5, "k"],
      [update.topics, update.data, update.private?, update.id, update.type, update.retry_after, key]
    assert_equal [nil, ["b"]], [hub.seen.last[1], hub.seen.last[0].topics]
    assert_raises(Hikyaku::InvalidTopic) { local.publish("a\u0000b") }
  end

  test "the token is presented as the specification says" do
    serve(ANSWER)
    publisher(token: "abc.def-_.ghi=").publish("a")
    publisher.publish("a")
    assert_equal ["Bearer abc.def-_.ghi=", nil], @server.requests.map { |request| request["authorization"] }
  end

  # Mercure draft-08, section "Presenting the Access Token": an encrypted connection.
  test "a token does not travel in the clear to another machine unless that is said" do
    ["http://hub.example.com/", "http://10.0.0.1/", "http://localhost.example.com", "http://127.0.0.1.example.com/"].each do |url|
      error = assert_raises(Hikyaku::ConfigError, url) { publisher(url, token: "t") }
      assert_match(/https/, error.message)
    end
    ["https://hub.example.com/", "http://localhost/", "http://hub.localhost/", "http://127.1.2.3/", "http://[::1]/", "unix:/x.sock"].each do |url|
      assert publisher(url, token: "t"), url
    end
    assert publisher("http://hub.example.com/", token: "t", insecure: true)
    assert publisher("http://hub.example.com/")
  end

  test "targets and settings that cannot work are refused, without repeating what may be secret" do
    wrong = ["", "hub", "ftp://example.com/s3cret", "http:///s3cret", "https://user:s3cret@example.com/", "unix:", "unix:/#{"x" * 200}",
      "https://exa mple.com/s3cret", "javascript:s3cret", "/.well-known/mercure"]
    wrong.each do |target|
      error = assert_raises(Hikyaku::ConfigError, target) { publisher(target) }
      refute_match(/s3cret/, error.message)
    end
    assert_raises(Hikyaku::ConfigError) { publisher("https://h/", token: "t", key: "k") }
    assert_raises(Hikyaku::ConfigError) { publisher("https://h/", retry_unknown: :yes) }
    assert_raises(Hikyaku::ConfigError) { publisher("https://h/", key: "") }
    assert_raises(Hikyaku::ConfigError) { publisher("https://h/", key: "k", issuer: "") }
  end

  test "neither token, key nor query is shown" do
    [{token: "t0ken"}, {token: -> { "t0ken" }}, {key: "t0ken-key", issuer: "i"}].each do |settings|
      shown = publisher("https://hub.example.com/h?authorization=t0ken", **settings).inspect
      assert_equal "#<Hikyaku::Publisher https://hub.example.com/h>", shown
    end
  end

  test "a key signs tokens for this hub" do
    serve(ANSWER)
    signer = publisher(key: "s" * 32, issuer: "https://shop.example.com")
    2.times { signer.publish("a") }
    tokens = @server.requests.map { |request| request["authorization"].delete_prefix("Bearer ") }
    assert_equal 1, tokens.uniq.size
    assert_equal ["https://shop.example.com", @server.url], claims(tokens.first).values_at("iss", "aud")
  end

  test "issuer and audience are those of a hub that was told neither" do
    Dir.mktmpdir do |folder|
      serve(ANSWER, unix: "#{folder}/s")
      publisher("unix:#{folder}/s", key: "s" * 32).publish("a")
      publisher("unix:#{folder}/s:/hub?x=1", key: "s" * 32).publish("a")
      found = @server.requests.map { |request| claims(request["authorization"].delete_prefix("Bearer ")).values_at("iss", "aud") }
      assert_equal [["hikyaku", "http://localhost/.well-known/mercure"], ["hikyaku", "http://localhost/hub"]], found
    end
  end

  test "a refused token that was signed here says with which names" do
    serve(->(peer) { peer.answer_all(401, "") })
    error = assert_raises(Hikyaku::Publisher::Refused) { publisher(key: "s" * 32, issuer: "shop").publish("a") }
    assert_match(/issuer "shop" and audience "#{Regexp.escape(@server.url)}"/, error.message)
    error = assert_raises(Hikyaku::Publisher::Refused) { publisher(token: "t").publish("a") }
    refute_match(/issuer/, error.message)
  end

  test "streams of a subject are closed, at this hub or at one in this process" do
    serve(->(peer) { peer.answer_all(200, '{"subject":"x","disconnected":3}', "content-type" => "application/json") }, path: "/hub?x=1")
    remote = publisher(token: "t")
    assert_equal 3, remote.disconnect(subject: "urn:user:é/?%")
    assert_equal 3, remote.disconnect(subject: "a", revoke: true)
    assert_equal [["DELETE", "/hub/subscribers/urn%3Auser%3A%C3%A9%2F%3F%25", "Bearer t"], ["DELETE", "/hub/subscribers/a?revoke=1", "Bearer t"]],
      @server.requests.map { |request| [request.verb, request.target, request["authorization"]] }
    hub = Struct.new(:seen) do
      def publish(update) = nil

      def disconnect(subject:, revoke:) = self.seen = [subject, revoke]
    end.new
    publisher(hub).disconnect(subject: "a")
    assert_equal ["a", false], hub.seen
    assert_raises(ArgumentError) { remote.disconnect(subject: "") }
  end

  test "a hub that does not know how to disconnect says so" do
    ['{"detail":"no"}', "[]", "#id", '{"disconnected":"3"}'].each do |body|
      serve(->(peer) { peer.answer_all(200, body, "content-type" => "application/json") })
      assert_raises(Hikyaku::Publisher::Refused, body) { publisher.disconnect(subject: "a") }
      teardown
    end
  end

  private

  def claims(token) = JWT.decode(token, "s" * 32, true, algorithms: ["HS256"]).first
end
