# frozen_string_literal: true

require "support/protocol_test"

# What nobody should send. Whatever comes, the answer is a refusal in a few words or what the standard says; no field is
# injected, nothing of the hub's inside is told, and the next request is served.
class Protocol::HostileInputTest < Protocol::Test
  # Terminology: not in topics, ids, types and matchers.
  FORBIDDEN = [*0x00..0x1F, 0x7F, *0x80..0x9F].freeze
  # General category Cf of Unicode 17.
  FORMAT = [0xAD, 0x600, 0x605, 0x61C, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x180E, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x202A, 0x202E, 0x2060, 0x2064, 0x2066, 0x2069, 0x206F,
    0xFEFF, 0xFFF9, 0xFFFB, 0x110BD, 0x110CD, 0x13430, 0x1343F, 0x1BCA0, 0x1BCA3, 0x1D173, 0x1D17A, 0xE0001, 0xE0020, 0xE007F].freeze
  # Near them, and allowed.
  ALLOWED = [0x20, 0x7E, 0xA0, 0xAE, 0x300, 0x606, 0x2010, 0x2028, 0x2029, 0x202F, 0x2065, 0x3000, 0xD7FF, 0xE000, 0xFFFD, 0xFFFE, 0x1F388, 0x10FFFF].freeze
  NOT_UTF8 = {
    "a lone continuation byte" => "%80", "0xFF" => "%FF", "0xFE" => "%FE", "a sequence cut short" => "%E2%82", "two bytes cut short" => "%C3", "an overlong slash" => "%C0%AF",
    "an overlong NUL" => "%C0%80", "an overlong slash of three bytes" => "%E0%80%AF", "an overlong slash of four bytes" => "%F0%80%80%AF", "a surrogate" => "%ED%A0%80",
    "a pair of surrogates" => "%ED%A0%BC%ED%BE%88", "beyond U+10FFFF" => "%F4%90%80%80", "five bytes" => "%F8%88%80%80%80", "six bytes" => "%FC%84%80%80%80%80", "Latin-1" => "caf%E9",
    "UTF-16 with its mark" => "%FE%FFa", "the second byte wrong" => "%E2%28%A1"
  }.freeze
  FIELDS = %w[topic id type].freeze

  test "control characters are refused in topic, id, type and every matcher (Terminology; Publication; Subscription)" do
    everywhere(FORBIDDEN.map { |code| URI.encode_www_form_component([code].pack("U")) })
  end

  test "format characters, which nobody sees, are refused likewise (Terminology: Cf)" do
    everywhere(FORMAT.map { |code| URI.encode_www_form_component([code].pack("U")) })
  end

  test "what is not UTF-8 is refused likewise, and in data too (Terminology; Publication, data)" do
    everywhere(NOT_UTF8.values)
    NOT_UTF8.each { |name, bytes| assert_problem 400, post("topic=a&data=x#{bytes}"), name }
  end

  test "raw bytes that were not escaped are judged the same" do
    ["\x00", "\x01", "\x7F", "\xFF", "\xC0\xAF", "\xED\xA0\x80", "\u0085", "\u202E"].each do |bytes|
      FIELDS.each { |name| assert_problem 400, post("#{rest_of(name)}&#{name}=a".b << bytes.b << "b"), [name, bytes].inspect }
    end
  end

  test "every other character is allowed, and arrives as it was sent" do
    ALLOWED.each do |code|
      text = "#{topic} #{[code].pack("U")}"
      stream = follow(text)
      publish(text, text, id: text, type: text)
      assert_equal [text, text, text], stream.next.to_a, format("U+%04X", code)
      stream.close
    end
  end

  test "data may hold control and format characters, which are the publisher's business" do
    data = (FORBIDDEN + FORMAT - [10, 13]).pack("U*")
    stream = follow(topic)
    publish(topic, data)
    assert_next data, stream
  end

  test "no header can be injected through what is sent (Server-Sent Events Field Injection)" do
    ["a\r\nx-injected: 1", "a\nx-injected: 1", "a\rx-injected: 1", "a\r\n\r\n<html>", "a\u2028x-injected: 1", "a%0d%0ax-injected: 1", "\u{560a}\u{560d}x-injected: 1"].each do |evil|
      answers = [subscribe("match" => evil), subscribe("match" => topic, "last_event_id" => evil), subscribe("match#{evil}" => "x"), post("topic" => evil), post("topic" => topic, "id" => evil),
        post("topic" => topic, "type" => evil), get("#{server.path}/subscriptions/exact/#{URI.encode_www_form_component(evil)}", token: subscriber("*")),
        client.request("DELETE", "#{server.path}/subscribers/#{URI.encode_www_form_component(evil)}", headers: bearer(publisher)), get("/#{URI.encode_www_form_component(evil)}"),
        subscribe({"match" => topic}, headers: {"last-event-id" => evil.delete("\r\n")})]
      answers.each_with_index { |response, i| assert_nil response["x-injected"], "#{i} #{evil.inspect}" }
    end
    publish(topic, "x", id: "a\u2028b: c\"d\\e; f=g")
    assert_nil get("#{server.path}/subscriptions", token: subscriber("*"))["b"]
  end

  test "a refusal repeats little of what it refuses, and no bytes that are not text" do
    long = "\u202E#{"x" * 4_000}"
    [subscribe("match" => long), subscribe([["match#{"y" * 4_000}", "x"]]), post("topic" => long), post("topic" => topic, "id" => "\u0000#{"x" * 900}"),
      post("topic=%FF%FE"), subscribe("match%FF=x"), subscribe("match=%FF")].each do |response|
      assert_operator response.body.bytesize, :<, 600
      assert response.body.valid_encoding?
      assert_kind_of String, response.json["detail"]
      refute_match(/[\u202E\u0000]/, response.body)
    end
  end

  test "parameters in unusual numbers and forms" do
    assert_problem 400, subscribe("match=a&" * 101)
    assert_equal 200, subscribe("#{"a=b&" * 1000}match=a").status
    assert_equal 200, subscribe("&" * 5000 + "match=a").status
    assert_equal 200, subscribe("match=a&match=a&match=a").status
    assert_equal 200, post("&=&==&topic=a&&a&=b&=").status
    assert_equal 200, post("topic=a&#{"x=1&" * 10_000}").status
    assert_problem 400, post("%74opi%63=%00")
    assert_equal 200, post("%74opi%63=a").status
    # Names that are not UTF-8 are no names that the hub knows.
    assert_equal 200, subscribe("match=a&%FF=b&x%80=c").status
    assert_equal 200, post("topic=a&%FF=b&topic%80=c").status
  end

  test "a query component beyond all measure is refused by somebody, and nobody is harmed" do
    [9_000, 11_000, 70_000, 200_000].each do |size|
      response = client.raw("GET #{server.path}?match=a&x=#{"y" * size} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n", method: "HEAD")
      # Puma takes 10 KiB, the engine in C 64.
      expected = (size < 10_000) ? [200] : [400, 414, 431]
      assert_includes (size < 60_000) ? expected | [200] : expected, response.status, size
    rescue EOFError
      assert_operator size, :>, 60_000, "refused without a word"
    end
    alive
  end

  test "headers beyond all measure are refused by somebody, and nobody is harmed" do
    ["x: #{"y" * 200_000}", (1..20_000).map { |i| "x-#{i}: y" }.join("\r\n"), "cookie: #{"a=b; " * 50_000}", "authorization: Bearer #{"x" * 100_000}"].each do |header|
      response = client.raw("GET #{server.path}?match=a HTTP/1.1\r\nhost: a\r\n#{header}\r\nconnection: close\r\n\r\n", method: "HEAD")
      assert_includes 400..499, response.status
    rescue EOFError
      nil # refused without a word
    end
    alive
  end

  # RFC 9112, sections 6.1 and 6.3: who reads such a message differently from a proxy could be made to see two.
  SMUGGLING = {
    "two lengths that differ" => "content-length: 5\r\ncontent-length: 6", "a list of lengths" => "content-length: 5, 6",
    "a negative length" => "content-length: -1", "a length with a sign" => "content-length: +5", "a length that is none" => "content-length: five", "a length in hexadecimal" => "content-length: 0x5",
    "an unknown coding" => "transfer-encoding: identity", "chunked not last" => "transfer-encoding: chunked, gzip", "chunked twice" => "transfer-encoding: chunked, chunked", "chunked misspelled" => "transfer-encoding: xchunked",
    "a length beyond all measure" => "content-length: #{"9" * 40}", "a space before the colon" => "content-length : 5", "a line break in a value" => "x: y\r\n content-length: 5"
  }.freeze

  test "requests that a proxy might read otherwise publish nothing unseen (RFC 9112, section 6)" do
    stream = follow(topic("smuggled"))
    inner = "POST #{server.path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer #{publisher}\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: #{form("topic" => topic("smuggled")).bytesize}\r\n\r\n#{form("topic" => topic("smuggled"))}"
    SMUGGLING.each do |name, header|
      outer = "POST #{server.path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/x-www-form-urlencoded\r\n#{header}\r\n\r\n0\r\n\r\n"
      response = begin
        client.raw("#{outer}#{inner}", seconds: 1)
      rescue EOFError, HttpClient::TooLate
        nil
      end
      assert_includes 400..501, response.status, name if response
    end
    publish(topic("smuggled"), "seen")
    assert_next "seen", stream
    alive
  end

  # RFC 9112, section 6.3: a server may refuse it. Ours do; where the hub is mounted, its server decides.
  test "of a length and a coding the coding counts, if it is not refused" do
    stream = follow(topic)
    body = form("topic" => topic, "data" => "in chunks")
    headers = bearer(publisher).merge("content-type" => "application/x-www-form-urlencoded", "content-length" => "5", "transfer-encoding" => "chunked")
    response = client.request("POST", server.path, headers: headers, body: "#{body.bytesize.to_s(16)}\r\n#{body}\r\n0\r\n\r\n")
    return assert_problem(400, response) if HubServer::OWN
    assert_equal 200, response.status
    assert_next "in chunks", stream
  end

  test "what is no HTTP request gets no stream" do
    ["GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET #{server.path}?match=a\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03", "\x00" * 100, "get #{server.path}?match=a HTTP/1.1\r\nhost: a\r\n\r\n",
      "GET #{server.path}?match=a HTTP/1.1\r\n: x\r\n\r\n", "GET #{server.path}?match=a HTTP/1.1\r\nx\x00y: z\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET #{server.path}?match=\x00 HTTP/1.1\r\nhost: a\r\n\r\n",
      "GET #{server.path}?match=a b HTTP/1.1\r\nhost: a\r\n\r\n"].each do |bytes|
      response = client.raw(bytes.b, seconds: 0.4)
      assert_includes [400, 404, 405, 501, 505], response.status, bytes.inspect
    rescue EOFError, HttpClient::TooLate
      nil # nothing that can be answered
    end
    alive
  end

  test "paths with what should not be in them lead nowhere" do
    ["/.well-known/mercure/%2e%2e/mercure", "/.well-known/../.well-known/mercure", "/.well-known/mercure%00", "/.well-known/mercure/%00", "/.well-known/mercure;x", "/.well-known/mercure/subscriptions/%00/a",
      "/.well-known/mercure/subscriptions/exact/%00", "/%FF", "/.well-known/mercure/%FF%FE", "/.well-known%2Fmercure", "/.well-known/merc%75re", "/.well-known/mercure/ui/../../../etc/passwd",
      "/.well-known/mercure/subscriptions/../../mercure", "/\xFF\xFE", "/.well-known\\mercure"].each do |path|
      response = get(path, token: subscriber("*"))
      assert_includes [400, 404], response.status, path unless path.include?("subscriptions/exact/%00") && response.status == 200
      refute_match(/root:/, response.body)
    end
    alive
  end

  test "what a client says of hosts and proxies changes nothing of what the hub says of itself" do
    lies = {"host" => "evil.example", "x-forwarded-host" => "evil.example", "x-forwarded-proto" => "ftp", "forwarded" => "host=evil.example", "x-original-url" => "/evil", "x-rewrite-url" => "/evil", "x-http-method-override" => "DELETE"}
    listed = get("#{server.path}/subscriptions", token: subscriber("*"), headers: lies)
    assert_includes listed["link"], "<https://hub.example.com/.well-known/mercure>"
    refused = post({"topic" => topic}, token: nil, headers: lies)
    assert_challenge 401, nil, refused
    metadata = get("/.well-known/oauth-protected-resource/.well-known/mercure", headers: lies)
    assert_equal "https://hub.example.com/.well-known/mercure", metadata.json["resource"]
    [listed, refused, metadata].each { |response| refute_includes response.headers.to_s + response.body, "evil" }
  end

  test "a request in absolute form, OPTIONS *, HTTP/1.0 and Expect are understood or refused" do
    assert_equal 200, client.raw("GET http://hub.example.com#{server.path}?match=a HTTP/1.1\r\nhost: hub.example.com\r\n\r\n", method: "HEAD").status
    assert_includes [200, 204, 400, 404], client.raw("OPTIONS * HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").status
    old = client.raw("GET #{server.path}?match=a HTTP/1.0\r\n\r\n", method: "HEAD")
    assert_equal 200, old.status
    body = form("topic" => topic)
    response = client.raw("POST #{server.path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer #{publisher}\r\ncontent-type: application/x-www-form-urlencoded\r\nexpect: 100-continue\r\ncontent-length: #{body.bytesize}\r\nconnection: close\r\n\r\n#{body}")
    assert_includes [100, 200], response.status
  end

  test "requests that follow a subscription on its connection are not served: the stream is the connection's last answer" do
    connection = client.connect
    publishing = "POST #{server.path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer #{publisher}\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: #{form("topic" => topic).bytesize}\r\n\r\n#{form("topic" => topic)}"
    witness = follow(topic)
    connection.write("GET #{server.path}?match=#{URI.encode_www_form_component(topic)} HTTP/1.1\r\nhost: a\r\n\r\n#{publishing}")
    stream = EventStream.new(connection, connection.head(HttpClient.now + HttpClient::PATIENCE)).tap { |one| @streams << one }
    assert_equal "close", stream["connection"].downcase
    publish(topic, "mine")
    assert_next "mine", witness
    assert_next "mine", stream
  end

  test "a client that breaks off in the middle of a publish publishes nothing" do
    stream = follow(topic)
    body = form("topic" => topic, "data" => "half")
    connection = client.connect
    connection.write("POST #{server.path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer #{publisher}\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: #{body.bytesize + 10}\r\n\r\n#{body}")
    connection.close
    publish(topic, "whole")
    assert_next "whole", stream
  end

  test "many clients that break off leave nothing behind" do
    start
    connections = Array.new(50) do |i|
      client.connect.tap { |connection| connection.write("GET #{server.path}?match=#{i}&match_exact=x#{i} HTTP/1.1\r\nhost: a\r\n\r\n") }
    end
    connections.each_with_index { |connection, i| connection.head(HttpClient.now + HttpClient::PATIENCE) if i.even? }
    connections.each(&:close)
    # The last requests may not have been read yet: nobody is there, and stays away.
    empty = 0
    eventually { (empty = hub.stats[:subscribers].zero? ? empty + 1 : 0) == 10 }
    assert_equal({subscribers: 0, subscriptions: 0, feeds: 0}, hub.stats.slice(:subscribers, :subscriptions, :feeds))
  end

  private

  # @param values [Array<String>] percent-encoded
  def everywhere(values)
    values.each do |value|
      FIELDS.each do |name|
        ["#{name}=#{value}", "#{name}=a#{value}b"].each { |field| assert_problem 400, post("#{rest_of(name)}&#{field}"), field }
      end
      assert_problem 400, post("topic=a&topic=b#{value}"), "an alternate topic: #{value}"
      %w[match match_exact match_urlpattern].each { |name| assert_problem 400, subscribe("match=good&#{name}=a#{value}b"), "#{name} #{value}" }
      assert_problem 400, subscribe("match=good", method: "QUERY", body: "match=a#{value}b"), value
      assert_problem 400, subscribe("match_exact#{value}=a"), value
    end
  end

  def rest_of(name) = (name == "topic") ? "data=x" : "topic=a"

  def alive
    stream = follow(topic("alive"))
    publish(topic("alive"), "yes")
    assert_next "yes", stream
  end
end
