# frozen_string_literal: true

require_relative "integration"
require_relative "native_hub"

# Tests of the hub's process on the engine in C. Whatever a test does to a hub, its log complains of nothing, and sanitizers find
# nothing.
class Integration::NativeTest < Integration::Test
  include AccessTokens

  PATH = NativeHub::PATH

  def setup
    skip Sanitizers.missing if Sanitizers.wanted? && Sanitizers.missing
    super
    @hubs = []
  end

  def teardown
    super
    Array(@hubs).each { |hub| assert_empty hub.complaints, hub.log[-3_000..] || hub.log }
  end

  # @return [NativeHub]
  def start_native(*flags, **options)
    hub = ending(NativeHub.new(*flags, **options))
    @hubs << hub
    hub
  end

  # @return [HttpClient::Connection]
  def connect(hub) = ending(hub.client.connect)

  # @return [TCPSocket]
  def socket(hub) = ending(TCPSocket.new("127.0.0.1", hub.port).tap { |socket| socket.setsockopt(:TCP, :NODELAY, true) })

  # @return [EventStream]
  def follow(hub, topic, token: nil, headers: {}, **parameters)
    stream = hub.subscribe({match: topic}.merge(parameters), token: token, headers: headers)
    assert_kind_of EventStream, stream, "no stream: #{stream.body unless stream.is_a?(EventStream)}"
    ending(stream)
  end

  # @return [String] bytes of a publish
  def publication(body, token: nil, headers: {})
    lines = {"Host" => "a", "Authorization" => ("Bearer #{token}" if token), "Content-Type" => "application/x-www-form-urlencoded",
             "Content-Length" => body.bytesize.to_s}.compact.merge(headers)
    "POST #{PATH} HTTP/1.1\r\n#{lines.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n#{body}"
  end

  # @return [String] bytes of a subscribe
  def subscription_to(topic, query: "", headers: {})
    "GET #{PATH}?#{URI.encode_www_form(match: topic)}#{query} HTTP/1.1\r\nHost: a\r\n#{headers.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n"
  end

  # @return [HttpClient::Response] the next one on a connection
  def answer(connection, method: "GET", seconds: HttpClient::PATIENCE)
    deadline = HttpClient.now + seconds
    response = connection.head(deadline)
    response.body = connection.body(response, method, deadline)
    response
  end

  # A problem details document (RFC 9457), and where asked the time to come back.
  def assert_refused(status, response, retry_after: false)
    assert_equal status, response.status, response.body
    assert_equal "application/problem+json", response["content-type"]
    assert_equal status, response.json["status"]
    refute_empty response.json["detail"]
    assert_match(/\A[1-9]\d*\z/, response["retry-after"]) if retry_after
  end

  # Nothing of it is left open, and it still serves.
  def assert_well(hub)
    stream = follow(hub, topic = "https://example.com/well/#{rand(2**40)}")
    hub.publish(topic, "still here")
    assert_equal "still here", stream.next.data
    assert_equal 200, hub.get("/healthz").status
    stream.close
  end
end
