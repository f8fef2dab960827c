# frozen_string_literal: true

require "securerandom"
require "support/integration"

# The hub in C answers as the hub in Ruby does, to the byte: status line, headers, content, streams. The same requests go to both,
# in the same order, each twice, so that the engine in C answers once by asking and once from what it remembers. Not here: bodies
# that are too large, of which Puma reads more, and malformed requests, which are refused in other words.
class Integration::EnginesAlikeTest < Integration::Test
  include AccessTokens

  PATH = "/.well-known/mercure"
  FORM = "application/x-www-form-urlencoded"
  # What differs from one hub to the next: ids, the memory of idempotency keys.
  RANDOM = {
    /#[\w-]{11}/ => "#id",
    /urn(:|%3A)uuid(:|%3A)\h{8}-\h{4}-\h{4}-\h{4}-\h{12}/ => "urn:uuid:id",
    /(hikyaku-idempotency: )\w+/ => '\1memory',
    /^retry: \d+/ => "retry: some",
    /^date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT/ => "date: now",
    /127\.0\.0\.1:\d+/ => "hub"
  }.freeze
  # Seconds without a byte after which an answer is looked at: where its end cannot be told, and where it can.
  SILENCE = {false => 0.15, true => 0.01}.freeze
  # Seconds for which the rest of an answer may be late.
  PATIENCE = 30

  def setup
    super
    flags = ["--no-dev", "--legacy", "--subscriptions", "--anonymous", "--cors-origin", "https://a.example", "--publish-origin", "https://a.example",
      "--issuer", ISSUER, "--resource-identifier", HUB_URL, "--publisher-key", SECRETS[:publisher], "--subscriber-key", SECRETS[:subscriber],
      "--max-topics", "5", "--max-id-bytes", "50", "--max-type-bytes", "20", "--max-request-bytes", "2000", "--heartbeat", "0"]
    @hubs = %w[ruby c].map { |engine| start_hub(*flags, "--engine", engine) }
  end

  test "every answer is the same, whichever engine gives it, and whether it is asked for the first time or again" do
    requests.each do |name, request|
      first, second = Array.new(2) { ask(request) }
      assert_equal first.first, first.last, "#{name}: #{request[0, 300]}"
      assert_equal second.first, second.last, "#{name}, again: #{request[0, 300]}"
    end
  end

  test "requests that come in pieces, and in one piece, are answered in order" do
    all = [publish("topic=/a&data=1"), get("/nothing"), publish("topic=/a&data=2&topic="), head("#{PATH}?match=/a"), publish("topic=/b&data=3")].join
    statuses = %w[200 404 400 200 200]
    whole = ask(all) { |answers| answers.uniq.one? && answers.first.scan("HTTP/1.1 ").size == statuses.size }
    assert_equal whole.first, whole.last
    assert_equal statuses, whole.last.scan(/HTTP\/1.1 (\d+)/).flatten
    pieces = ask(*all.chars.each_slice(7).map(&:join)) { |answers| answers == whole }
    assert_equal whole, pieces
  end

  test "what RFC 9112 does not permit is refused alike" do
    malformed.each do |status, requests|
      requests.each do |request|
        answers = ask(request) { |both| both.all? { |answer| answer.end_with?("[closed]") } }
        assert_equal [status] * 2, answers.map { |answer| answer[%r{\AHTTP/1\.[01] (\d+)}, 1].to_i }, request
        answers.each { |answer| assert answer.end_with?("[closed]"), request }
      end
    end
    @hubs.each { |hub| refute_match(/ERROR/, hub.log) }
  end

  private

  def malformed
    post = "POST #{PATH} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:"
    {
      400 => ["GET /x HTTP/1.1\r\n\r\n", "GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET /x HTTP/1.1\r\nHost: a b\r\n\r\n", "GET /x HTTP/1.1\r\nHost: a:x\r\n\r\n",
        "GET /x#y HTTP/1.1\r\nHost: a\r\n\r\n", "POST #{PATH} HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "#{post} chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", "#{post} chunked\r\n\r\nffffffffffffffff1\r\n", "#{post} chunked\r\n\r\nx\r\n", "#{post} chunked\r\n\r\n 1\r\nx\r\n", "#{post} chunked\r\n\r\n1\nx\r\n",
        "#{post} chunked\r\n\r\n1\r\nxyz", "#{post} chunked\r\n\r\n1;\r\nx\r\n", "#{post} chunked\r\n\r\n0\r\nno field\r\n\r\n"],
      501 => ["#{post} gzip, chunked\r\n\r\n0\r\n\r\n"],
      505 => ["GET /x HTTP/2.0\r\nHost: a\r\n\r\n", "GET /x HTTP/1.2\r\nHost: a\r\n\r\n"]
    }
  end

  def requests
    publisher, subscriber = token(:publisher, "*"), token(:subscriber, "/a", urlpattern("/b/:id"), payload: {"name" => "Ann"})
    narrow = token(:publisher, "/a")
    subscribing(subscriber).merge(publishing(publisher, narrow)).merge(others(publisher, subscriber))
  end

  def subscribing(token)
    {
      "a stream" => get("#{PATH}?match=/a"),
      "a stream of a pattern" => get("#{PATH}?match_urlpattern=/b/:id&match=/a"),
      "a stream with a token" => get("#{PATH}?match=/a", "Authorization: Bearer #{token}"),
      "with the token in the cookie" => get("#{PATH}?match=/a", "Cookie: a=b; __Secure-mercure_access_token=#{token}; c=d"),
      "with the token in the query" => get("#{PATH}?topic=/a&authorization=#{token}"),
      "of a page" => get("#{PATH}?match=/a", "Origin: https://a.example"),
      "of a page that is not on the list" => get("#{PATH}?match=/a", "Origin: https://b.example"),
      "from the beginning" => get("#{PATH}?match=/a&last_event_id=earliest"),
      "after an unknown event" => get("#{PATH}?match=/a", "Last-Event-ID: urn:nothing"),
      "with an empty cursor" => get("#{PATH}?match=/a&last_event_id="),
      "the header beats the query" => get("#{PATH}?match=/a&last_event_id=earliest", "Last-Event-ID: urn:header"),
      "old names of the cursor" => get("#{PATH}?topic=/a&lastEventID=urn:x&Last-Event-ID=urn:y"),
      "an odd cursor" => get("#{PATH}?match=/a&last_event_id=%C3%A9%22%5C"),
      "a cursor that is no text" => get("#{PATH}?match=/a&last_event_id=%FF%0A"),
      "encoded names" => get("#{PATH}?%6Datch=/a&last%5Fevent_id=earliest"),
      "an unknown matcher" => get("#{PATH}?match=/a&matching=/b"),
      "no matcher" => get("#{PATH}?other=1"),
      "no query" => get(PATH),
      "a matcher that is no text" => get("#{PATH}?match=%FF"),
      "a pattern that is none" => get("#{PATH}?match_urlpattern=/(a"),
      "a token that is none" => get("#{PATH}?match=/a", "Authorization: Bearer x.y.z"),
      "an Authorization that is none" => get("#{PATH}?match=/a", "Authorization: Basic eDp5"),
      "two Authorizations" => get("#{PATH}?match=/a", "Authorization: Bearer #{token}", "Authorization: Bearer #{token}"),
      "HTTP/1.0" => "GET #{PATH}?match=/a HTTP/1.0\r\n\r\n",
      "HEAD" => head("#{PATH}?match=/a&last_event_id=earliest"),
      "HEAD, for the newest event" => head("#{PATH}?match=/a&last_event_id="),
      "QUERY" => "QUERY #{PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: #{FORM}\r\nContent-Length: 8\r\n\r\nmatch=/a"
    }
  end

  def publishing(token, narrow)
    {
      "an update" => publish("topic=/a&data=x", token: token),
      "every field" => publish("topic=/a&topic=/b/1&data=1%0A2&id=urn:1&type=t&retry=10&private=", token: token),
      "no data" => publish("topic=/a", token: token),
      "empty fields" => publish("topic=/a&id=&type=&retry=&data=", token: token),
      "fields twice" => publish("topic=/a&data=1&data=2&id=urn:2&id=urn:3", token: token),
      "a topic twice" => publish("topic=/a&topic=/a&data=x", token: token),
      "odd topics" => publish("topic=B%C3%BCcher&topic=urn:x&topic=https://EXAMPLE.com/%7Ea&data=x", token: token),
      "plus and percent" => publish("topic=/a+b&data=a+b%2Bc%zz%", token: token),
      "no topic" => publish("data=x", token: token),
      "an empty topic" => publish("topic=&data=x", token: token),
      "the topic for all" => publish("topic=*&data=x", token: token),
      "a topic of the hub's" => publish("topic=/.well-known/mercure/x&data=x", token: token),
      "a topic of the hub's in disguise" => publish("topic=/.well-known/%256Dercure&data=x", token: token),
      "six topics" => publish(%w[a b c d e f].map { |name| "topic=/#{name}" }.join("&"), token: token),
      "a long id" => publish("topic=/a&id=#{"x" * 51}", token: token),
      "a long type" => publish("topic=/a&type=#{"x" * 21}", token: token),
      "an id of the hub's kind" => publish("topic=/a&id=%23abc", token: token),
      "the earliest" => publish("topic=/a&id=earliest", token: token),
      "the hub's type" => publish("topic=/a&type=mercure", token: token),
      "a retry that is no number" => publish("topic=/a&retry=1x", token: token),
      "a retry of many digits" => publish("topic=/a&retry=0000000000000000000000012", token: token),
      "data that is no text" => publish("topic=/a&data=%FF", token: token),
      "a line break in an id" => publish("topic=/a&id=a%0Ab", token: token),
      "in chunks" => "POST #{PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer #{token}\r\nContent-Type: #{FORM}\r\nTransfer-Encoding: chunked\r\n\r\n" \
        "7\r\ntopic=/\r\n8;a=b\r\na&data=x\r\n0\r\n\r\n",
      "what the token does not grant" => publish("topic=/b/1&data=x", token: narrow),
      "what the token grants, and more" => publish("topic=/a&topic=/b/1&data=x", token: narrow),
      "what the token grants" => publish("topic=/a&data=x", token: narrow),
      "without a token" => publish("topic=/a&data=x", token: nil),
      "with a token of 0.x" => publish("topic=/a&data=x", token: legacy_token(:publisher, {"publish" => ["*"]})),
      "with a reader's token" => publish("topic=/a&data=x", token: token(:subscriber, "*")),
      "as something else" => "POST #{PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer #{token}\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\ntopic=/a",
      "with a parameter" => "POST #{PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer #{token}\r\nContent-Type: #{FORM.upcase} ; charset=utf-8\r\nContent-Length: 8\r\n\r\ntopic=/a",
      "with a query" => publish("topic=/a&data=x", token: token, target: "#{PATH}?topic=/b"),
      "by cookie" => publish("topic=/a&data=x", token: nil, headers: ["Cookie: __Secure-mercure_access_token=#{token}", "Origin: https://a.example"]),
      "by cookie from elsewhere" => publish("topic=/a&data=x", token: nil, headers: ["Cookie: __Secure-mercure_access_token=#{token}", "Origin: https://b.example"]),
      "by cookie, behind a proxy that speaks TLS" => by_cookie(token, "Origin: https://x", "X-Forwarded-Proto: https"),
      "by cookie, behind two proxies" => by_cookie(token, "Origin: https://x", "X-Forwarded-Proto: https,http"),
      "by cookie, behind a proxy that does not" => by_cookie(token, "Origin: https://x", "X-Forwarded-Proto: http,https"),
      "by cookie, of the target's own origin" => by_cookie(token, "Origin: http://y").sub("POST ", "POST http://y"),
      "by cookie, of the origin of a Host that does not count" => by_cookie(token, "Origin: http://x").sub("POST ", "POST http://y"),
      "by cookie from nowhere" => publish("topic=/a&data=x", token: nil, headers: ["Cookie: __Secure-mercure_access_token=#{token}"]),
      "by cookie with a referrer" => publish("topic=/a&data=x", token: nil, headers: ["Cookie: __Secure-mercure_access_token=#{token}", "Referer: http://x/page"]),
      "with a key" => publish("topic=/a&data=x", token: token, headers: ["Idempotency-Key: k"]),
      "with a key that is too long" => publish("topic=/a&data=x", token: token, headers: ["Idempotency-Key: #{"k" * 300}"])
    }
  end

  def others(publisher, subscriber)
    {
      "nothing there" => get("/nothing"),
      "a path that is no text" => get("/%FF"),
      "the hub's path, longer" => get("#{PATH}/"),
      "OPTIONS" => "OPTIONS #{PATH} HTTP/1.1\r\nHost: x\r\nOrigin: https://a.example\r\nAccess-Control-Request-Method: POST\r\n\r\n",
      "OPTIONS elsewhere" => "OPTIONS /nothing HTTP/1.1\r\nHost: x\r\n\r\n",
      "a host that is empty" => get("/nothing").sub("Host: x", "Host:"),
      "OPTIONS of all" => "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
      "DELETE" => "DELETE #{PATH} HTTP/1.1\r\nHost: x\r\n\r\n",
      "PATCH" => "PATCH #{PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
      "the subscriptions" => get("#{PATH}/subscriptions", "Authorization: Bearer #{token(:subscriber, "*")}"),
      "the subscriptions, not granted" => get("#{PATH}/subscriptions", "Authorization: Bearer #{subscriber}"),
      "the subscriptions, HEAD" => head("#{PATH}/subscriptions"),
      "the metadata" => get("/.well-known/oauth-protected-resource#{PATH}"),
      "health" => get("/healthz"),
      "readiness" => head("/readyz"),
      "no metrics" => get("/metrics"),
      "disconnecting" => "DELETE #{PATH}/subscribers/alice HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer #{publisher}\r\n\r\n",
      "closing" => "GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
      "HTTP/1.0, kept" => "GET /nothing HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
      "HTTP/1.0" => "GET /nothing HTTP/1.0\r\n\r\n"
    }
  end

  def get(target, *headers) = ["GET #{target} HTTP/1.1", "Host: x", *headers, "", ""].join("\r\n")

  def head(target) = get(target).sub("GET", "HEAD")

  def publish(body, token: @own ||= token(:publisher, "*"), headers: [], target: PATH)
    authorization = ["Authorization: Bearer #{token}"] if token
    ["POST #{target} HTTP/1.1", "Host: x", *authorization, *headers, "Content-Type: #{FORM}", "Content-Length: #{body.bytesize}", "", body].join("\r\n")
  end

  def by_cookie(token, *headers) = publish("topic=/a&data=x", token: nil, headers: ["Cookie: __Secure-mercure_access_token=#{token}", *headers])

  # @yieldparam answers [Array<String>] what has come until now
  # @yieldreturn [Boolean] whether that is all; by default it is when both hubs say the same
  # @return [Array<String>] what comes back, without what is random, the headers of each answer in order of their names
  def ask(*pieces, &all)
    sockets = @hubs.map { |hub| TCPSocket.new("127.0.0.1", hub.port).tap { |socket| socket.setsockopt(:TCP, :NODELAY, true) } }
    received = sockets.to_h { |socket| [socket, +"".b] }
    deadline = HttpClient.now + PATIENCE
    sockets.map { |socket| Thread.new { send_pieces(socket, pieces) } }.each(&:join)
    alone = pieces.one? && !pieces.first.start_with?("HEAD")
    loop do
      answers = received.map { |socket, bytes| Thread.new { read(socket, bytes, alone: alone).then { |ending| normal(bytes) << ending } } }.map(&:value)
      return answers if HttpClient.now > deadline || (all ? all.call(answers) : answers.uniq.one?)
    end
  ensure
    sockets.each(&:close)
  end

  def send_pieces(socket, pieces)
    pieces.each do |piece|
      socket.write(piece)
      sleep 0.001 if pieces.size > 1
    end
  rescue Errno::EPIPE, Errno::ECONNRESET
    nil # what came before is to be read
  end

  # @return [String] how the connection is when no more comes
  def read(socket, bytes, alone:)
    while socket.wait_readable(bytes.empty? ? 5 : SILENCE.fetch(alone && whole?(bytes)))
      part = socket.read_nonblock(65_536, exception: false) or return "[closed]"
      bytes << part unless part == :wait_readable
    end
    "[open]"
  rescue Errno::ECONNRESET
    "[reset]"
  end

  def whole?(bytes)
    head, content = bytes.split("\r\n\r\n", 2)
    content && content.bytesize == head[/^content-length: (\d+)/, 1]&.to_i
  end

  def normal(bytes)
    text = RANDOM.reduce(bytes.dup.force_encoding(Encoding::UTF_8).scrub) { |all, (pattern, stand_in)| all.gsub(pattern, stand_in) }
    text.gsub(/(HTTP\/1\.\d \d{3} [^\r]*\r\n)((?:[^\r\n]+\r\n)+)\r\n/) do
      "#{$1}#{$2.lines.uniq.sort.join}\r\n"
    end
  end
end
