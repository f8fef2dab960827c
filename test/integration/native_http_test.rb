# frozen_string_literal: true

require "support/native_test"

# HTTP/1.1 as the server of the engine in C speaks it: what it answers by itself, what Ruby answers through it, and what it refuses.
class Integration::NativeHttpTest < Integration::NativeTest
  BOOK = Integration::BOOK

  def self.hub
    @hub ||= NativeHub.new("--max-connections-per-address", "2000").tap { |hub| Minitest.after_run { hub.stop } }
  end

  def setup
    super
    @hubs << hub
  end

  test "a thousand publishes, sent before the first answer is read, are answered and delivered in order" do
    stream = follow(hub, BOOK)
    connection = connect(hub)
    requests = Array.new(1_000) { |number| publication("topic=#{BOOK}&data=#{number}&id=urn:#{number}", token: hub.publisher) }
    writer = Thread.new { requests.each_slice(100) { |some| connection.write(some.join) } }
    answers = Array.new(1_000) { answer(connection) }
    writer.join
    assert_equal({200 => 1_000}, answers.map(&:status).tally)
    assert_equal((0...1_000).map { |number| "urn:#{number}" }, answers.map(&:body))
    assert_equal((0...1_000).map(&:to_s), stream.take(1_000).map(&:data))
    assert_operator hub.metrics["grant_hits_total"], :>=, 998
  end

  test "requests of all kinds on one connection are answered in order, whoever answers them" do
    mixed = [
      ["GET", "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", 200],
      ["POST", publication("topic=#{BOOK}&data=1", token: hub.publisher), 200],
      ["HEAD", "HEAD #{PATH}?match=a HTTP/1.1\r\nHost: a\r\n\r\n", 200],
      ["POST", publication("topic=#{BOOK}&data=2", token: hub.publisher), 200],
      ["GET", "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n", 404],
      ["POST", publication("data=3", token: hub.publisher), 400],
      ["OPTIONS", "OPTIONS #{PATH} HTTP/1.1\r\nHost: a\r\n\r\n", 204],
      ["POST", publication("topic=#{BOOK}&data=4", token: "no.token.atall"), 401],
      ["POST", publication("topic=#{BOOK}&data=5", token: hub.publisher), 200]
    ] * 20
    stream = follow(hub, BOOK)
    connection = connect(hub)
    writer = Thread.new { connection.write(mixed.map { |_, request| request }.join) }
    assert_equal mixed.map(&:last), mixed.map { |method, *| answer(connection, method: method).status }
    writer.join
    assert_equal %w[1 2 5] * 20, stream.take(60).map(&:data)
  end

  test "a stream that is asked for behind publishes begins behind their answers; what comes after it is not heard" do
    connection = connect(hub)
    connection.write(publication("topic=#{BOOK}&data=before", token: hub.publisher) + subscription_to(BOOK) +
      publication("topic=#{BOOK}&data=never", token: hub.publisher))
    assert_equal 200, answer(connection).status
    stream = EventStream.new(connection, connection.head(HttpClient.now + HttpClient::PATIENCE))
    assert_equal "text/event-stream", stream["content-type"]
    stream.comments_until(1)
    hub.publish(BOOK, "after")
    assert_equal "after", stream.next.data
  end

  test "HEAD has the head of GET and no content; OPTIONS says what may be done; others are told what is understood" do
    get = hub.client.stream("GET", "#{PATH}?match=a")
    head = hub.client.request("HEAD", "#{PATH}?match=a")
    headers = ->(response) { response.headers.sort.reject { |field| field.first == "connection" } }
    assert_equal headers.call(get.response), headers.call(head)
    get.close
    plain = hub.client.request("GET", "/healthz")
    bare = hub.client.request("HEAD", "/healthz")
    assert_equal [200, "ok\n"], [plain.status, plain.body]
    assert_equal [200, plain.headers.sort], [bare.status, bare.headers.sort]
    options = hub.client.request("OPTIONS", PATH)
    assert_equal [204, nil], [options.status, options["content-length"]]
    other = hub.client.request("PUT", PATH, body: "x")
    assert_refused 405, other
    assert_includes other["allow"], "GET"
  end

  test "whoever waits for 100 Continue is told to go on, once, and only where the body is wanted (RFC 9110, section 10.1.1)" do
    body = "topic=#{BOOK}&data=awaited"
    connection = connect(hub)
    2.times do
      connection.write(publication(body, token: hub.publisher, headers: {"Expect" => "100-continue"}).delete_suffix(body))
      assert_equal 100, connection.head(HttpClient.now + HttpClient::PATIENCE).status
      connection.write(body)
      assert_equal 200, answer(connection).status
    end
    connection.write(publication(body, token: hub.publisher, headers: {"Expect" => "100-continue"}))
    assert_equal 200, answer(connection).status, "who does not wait is not told"
    large = publication("", token: hub.publisher, headers: {"Expect" => "100-continue", "Content-Length" => "2000000"})
    connection.write(large)
    assert_refused 413, answer(connection)
  end

  test "a body in chunks is one body, however it is cut, dribbled, or extended, and with trailers" do
    stream = follow(hub, BOOK)
    body = "topic=#{BOOK}&data=cut+up"
    head = "POST #{PATH} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer #{hub.publisher}\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = [1, 3, body.bytesize].map do |size|
      body.scan(/.{1,#{size}}/m).map { |part| "#{part.bytesize.to_s(16).upcase};x=\"y\"\r\n#{part}\r\n" }.join + "0\r\nTrailer: x\r\n\r\n"
    end
    chunks.each do |all|
      dribbling = socket(hub)
      (head + all).scan(/.{1,5}/m) { |part| dribbling.write(part) }
      assert_equal 200, answer(HttpClient::Connection.new(dribbling)).status
      assert_equal "cut up", stream.next.data
    end
  end

  test "a request that comes byte by byte is a request" do
    slow = socket(hub)
    publication("topic=#{BOOK}&data=slow", token: hub.publisher).each_char { |byte| slow.write(byte) }
    connection = HttpClient::Connection.new(slow)
    assert_equal 200, answer(connection).status
    subscription_to(BOOK, headers: {"Last-Event-ID" => "earliest"}).each_char { |byte| slow.write(byte) }
    assert_equal 200, connection.head(HttpClient.now + HttpClient::PATIENCE).status
  end

  MALFORMED = {
    "GET / HTTP/1.1\r\n\r\n" => 400,
    "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" => 400,
    "GET / HTTP/2.0\r\nHost: a\r\n\r\n" => 505,
    "GET  / HTTP/1.1\r\nHost: a\r\n\r\n" => 400,
    "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n" => 400,
    "GET / HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n" => 400,
    "GET / HTTP/1.1\r\nHost: a\r\nX: b\rc\r\n\r\n" => 400,
    "GET / HTTP/1.1\r\nHost : a\r\n\r\n" => 400,
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n" => 400,
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n" => 400,
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n" => 400,
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" => 501,
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n" => 400,
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n" => 400,
    "\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03\n".b => 400,
    "GET /#{"a" * 20_000} HTTP/1.1\r\nHost: a\r\n\r\n" => 414,
    "GET / HTTP/1.1\r\nHost: a\r\nX: #{"x" * 100_000}\r\n\r\n" => 431,
    "GET / HTTP/1.1\r\nHost: a\r\n#{"X: y\r\n" * 2_000}\r\n" => 431,
    "GET / HTTP/1.1\r\nHost: a\r\n#{"x" * 100_000}: y\r\n\r\n" => 431
  }.freeze

  test "what is no request, or too large a head, is refused in words, the connection ends, and nobody else notices" do
    other = follow(hub, BOOK)
    before = hub.metrics
    MALFORMED.each do |bytes, status|
      asking = socket(hub)
      begin
        asking.write(bytes)
      rescue SystemCallError
        nil # refused before it was read whole
      end
      connection = HttpClient::Connection.new(asking)
      response = answer(connection)
      assert_refused status, response
      assert_equal "close", response["connection"], bytes[0, 80]
      assert_nil asking.read(1), bytes[0, 80]
    end
    hub.publish(BOOK, "unharmed")
    assert_equal "unharmed", other.next.data
    assert_equal MALFORMED.size, hub.metrics[%(refusals_total{reason="malformed"})] - before.fetch(%(refusals_total{reason="malformed"}), 0)
  end

  test "a target and a head that are just not too long are understood" do
    long = "a" * 8_000
    assert_equal 404, hub.get("/#{long}").status
    stream = hub.subscribe({match: long[0, 4_000]})
    assert_kind_of EventStream, stream
    stream.close
    assert_equal 200, hub.get("/healthz", headers: {"x" => "x" * 7_000, "y" => "y" * 7_000}).status
  end

  test "a body that is too large is refused, also in chunks and also to who goes on sending it" do
    [{"Content-Length" => (5 * 1_048_576).to_s}, {"Content-Length" => nil, "Transfer-Encoding" => "chunked"}].each do |headers|
      sending = socket(hub)
      sending.write(publication("", token: hub.publisher, headers: headers).gsub(/^Content-Length: \r\n/, ""))
      part = "x" * 65_536
      part = "10000\r\n#{part}\r\n" if headers.key?("Transfer-Encoding")
      writer = Thread.new do
        80.times { sending.write(part) }
      rescue SystemCallError
        nil
      end
      assert_refused 413, answer(HttpClient::Connection.new(sending))
      writer.join(60) || flunk("it is neither read nor closed")
    end
    assert_well hub
  end

  test "who closes its side behind a request is answered; who closes it within one is not waited for (RFC 9112, section 9.6)" do
    whole = socket(hub)
    whole.write(publication("topic=#{BOOK}&data=x", token: hub.publisher))
    whole.close_write
    assert_equal 200, answer(HttpClient::Connection.new(whole)).status
    half = socket(hub)
    half.write("GET / HT")
    half.close_write
    assert_refused 400, answer(HttpClient::Connection.new(half))
    assert_equal "", half.read.to_s
  end

  test "a subscriber that closes its side has gone; one that sends more is read, and not heard" do
    before = hub.metrics["subscribers"]
    chatty = socket(hub)
    chatty.write(subscription_to(BOOK))
    stream = EventStream.new(connection = HttpClient::Connection.new(chatty), connection.head(HttpClient.now + HttpClient::PATIENCE))
    100.times { chatty.write("GET / HTTP/1.1\r\n\r\n") }
    hub.publish(BOOK, "read on")
    assert_equal "read on", stream.next.data
    chatty.close_write
    assert_empty stream.rest
    eventually("the end of the stream") { hub.metrics["subscribers"] == before }
  end

  test "a connection stays open between requests, and not where either side does not want it (RFC 9112, section 9.3)" do
    stays = {"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n" => true, "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" => false,
             "GET /healthz HTTP/1.0\r\n\r\n" => false, "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" => true,
             publication("topic=a&data=b", token: hub.publisher) => true,
             publication("topic=a&data=b", token: hub.publisher, headers: {"Connection" => "close"}) => false}
    stays.each do |request, open|
      2.times do # the second is answered by the engine, where it can be
        asking = socket(hub)
        asking.write(request)
        assert_equal 200, answer(connection = HttpClient::Connection.new(asking)).status
        asking.write("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n") if open
        open ? assert_equal(200, answer(connection).status) : assert_nil(asking.wait_readable(60) && asking.read(1), request)
      end
    end
  end

  private

  def hub = self.class.hub
end
