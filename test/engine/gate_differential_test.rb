# frozen_string_literal: true

require "test_helper"
require "ipaddr"
require "hikyaku/config"
require "hikyaku/web"
require "support/access_tokens"
require "support/engine_dump"

# What the gate of the engine in C answers by itself is what Web answers; and what it shows to Web is all that Web decides by.
class GateDifferentialTest < Minitest::Test
  HUB = "/.well-known/mercure"
  GRANT = Hikyaku::Web::Request::GRANT
  FORM = "application/x-www-form-urlencoded"
  PROXIES = %w[10.0.0.0/8 192.0.2.128/25 2001:db8::/33 ::1/128].freeze
  SETTINGS = {
    resource_identifier: AccessTokens::HUB_URL, issuer: AccessTokens::ISSUER, publisher_key: AccessTokens::SECRETS[:publisher],
    subscriber_key: AccessTokens::SECRETS[:subscriber], anonymous: true, cors_origins: ["https://app.example.com"],
    publish_origins: ["https://press.example.com"], trusted_proxies: PROXIES, max_topics: 3, max_topic_bytes: 40, max_id_bytes: 10,
    max_type_bytes: 10, max_request_bytes: 1024, engine: "ruby"
  }.freeze
  PUBLISHER = AccessTokens.token(:publisher, "*", sub: "press")
  SUBSCRIBER = AccessTokens.token(:subscriber, "/a", sub: "alice")
  OTHER = AccessTokens.token(:subscriber, "/b", sub: "bob")

  Asked = Struct.new(:method, :query, :version, :headers, :body, keyword_init: true) do
    def to_s = "#{method} #{HUB}#{"?#{query}" if query} HTTP/#{version}\r\n#{headers.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n#{body}".b

    def values(name) = headers.select { |each, _| each.casecmp?(name) }.map { |_, value| value.strip }
  end
  Answered = Struct.new(:key, :query, :cookie, :headers, :address, :verdict, :head, :body, :topics, :private, :frame)

  private_constant :Asked, :Answered

  # --- what Ruby is shown

  AUTHORIZATIONS = ["Bearer #{PUBLISHER}", "bearer  #{SUBSCRIBER}", "Bearer #{OTHER}", "Bearer x.y.z", "Basic abc", ""].freeze
  COOKIES = ["mercureAuthorization=#{PUBLISHER}", "__Secure-mercure_access_token=#{PUBLISHER}", "__Secure-mercure_access_token=#{SUBSCRIBER}",
    "__Secure-mercure_access_token = \"#{OTHER}\"", "x__Secure-mercure_access_token=x.y.z", "__secure-mercure_access_token=#{OTHER}",
    "__Secure-mercure_access_token", "__Secure-mercure_access_token=", "\tmercureAuthorization=#{SUBSCRIBER}", "theme=dark", "", "=", "a=b=c"].freeze
  OTHERS = {
    "Origin" => ["https://app.example.com", "https://press.example.com", "https://evil.example", "null", "http://hub.example.com", "https://hub.example.com"],
    "Referer" => ["https://press.example.com/page", "http://hub.example.com/", "https://evil.example/", "x"],
    "Content-Type" => [FORM, FORM, FORM, "#{FORM.upcase}; charset=utf-8", "text/plain", "multipart/form-data"],
    "Last-Event-ID" => ["one", "two", "earliest", "gone", ""], "Hikyaku-Stream" => ["1", "matchers", "0"], "X-Forwarded-For" => ["203.0.113.5", "203.0.113.6, 10.0.0.2", "nonsense"],
    "X-Forwarded-Proto" => ["https", "http"], "X-Forwarded-Scheme" => ["https"], "X-Forwarded-Ssl" => ["on", "off"], "X-Forwarded-Host" => ["evil.example"], "Accept" => ["text/event-stream", "application/vnd.msgpack, text/event-stream;q=0.5", "application/vnd.msgpack;q=0", "text/html", "*/*"],
    "Accept-Encoding" => ["gzip, deflate, br", "identity", "gzip;q=0", "identity;q=0, *;q=0", ""], "Sec-Fetch-Site" => ["cross-site"],
    "X-HTTP-Method-Override" => ["DELETE"], "Cache-Control" => ["no-cache"], "If-None-Match" => ["*"], "Range" => ["bytes=0-1"]
  }.freeze
  PARAMETERS = ["match=/a", "match=/b", "MATCH=/a", "match_urlpattern=/a/:id", "m%61tch=/a", "m%61tch%5Fexact=/c", "match_regexp=x", "topic=/a/{id}", "t%6Fpic=*",
    "authorization=#{SUBSCRIBER}", "%61uthorization=#{OTHER}", "authorization=x", "Authorization=#{OTHER}", "last_event_id=one", "last%5Fevent_id=two",
    "lastEventID=one", "Last-Event-ID=two", "last-event-id=two", "topics=x", "x=1", "", "=", "%", "match", "+match=/a"].freeze

  test "Web decides from what the gate shows it as it decides from the whole request" do
    [false, true].each do |legacy|
      random = Random.new(legacy ? 7 : 8)
      requests = Array.new(2_500) { random_request(random) }
      web = web(legacy: legacy)
      statuses = requests.zip(ask(requests, legacy: legacy)).filter_map do |request, answer|
        next if answer.key.empty?

        whole = outcome(web, env_of(request).merge("REMOTE_ADDR" => "10.0.0.9"))
        assert_equal whole, outcome(web, shown_env(request, answer)), request.to_s
        whole.first
      end
      counts = statuses.tally
      assert_operator statuses.size, :>, 2_000
      [200, 400, 401].each { |status| assert_operator counts.fetch(status, 0), :>, 200, counts.inspect }
    end
  end

  # --- publishing

  FIELDS = ["topic=/a", "topic=/b", "t%6fpic=%2Fc", "topic=https://example.com/a%3Fb", "topic=*", "topic=", "topic=/a%0A", "topic=/#{"x" * 39}", "topic=/#{"x" * 40}",
    "topic=/.well-known/mercure/x", "topic=/caf%C3%A9", "topic=books", "Topic=/x", "data=hello", "data=", "data", "data=a%0D%0Ab%0Ac%0D", "d%61ta=%E2%82%AC+%2B", "data=%FF",
    "data=%", "data=%4", "id=", "id", "id=1234567890", "id=12345678901", "id=a%20b", "id=%23a", "id=a%23", "id=earliest", "id=a%00", "id=%C3%A9", "type=", "type=note", "type=mercure",
    "type=Mercure", "type=a%0Ab", "type=12345678901", "retry=", "retry=0", "retry=007", "retry=999999999999", "retry=1000000000000", "retry=00000000000000000012", "retry=1%0A", "retry=-1",
    "retry=+1", "retry=1e3", "private", "private=", "private=off", "%70rivate=on", "Private=on", "", "=", "&", "x=y", "%FF=%FF"].freeze

  test "what the gate publishes is what Web publishes" do
    random = Random.new(9)
    bodies = FIELDS + Array.new(6_000) { Array.new(1 + random.rand(5)) { FIELDS[random.rand(FIELDS.size)] }.push("topic=/a").shuffle(random: random).join("&") }
    requests = bodies.map { |body| publish(body) }
    published = requests.zip(ask(requests)).count do |request, answer|
      next if answer.verdict == "asked"

      assert_equal "published", answer.verdict
      assert_equal from_ruby(request), [answer.body.sub(/\A#.{11}\z/m, "#"), answer.topics.lines(chomp: true), answer.private, without_id(answer.frame, answer.body)], request.body
    end
    assert_operator published, :>, 1_000
  end

  test "what publishers usually send is published by the gate" do
    bodies = ["topic=/a&data=x", "topic=https%3A%2F%2Fexample.com%2Fbooks%2F1&data=%7B%22a%22%3A1%7D&private=on", "topic=/a&topic=/b&id=urn:x&type=t&retry=5", "data=&topic=/a&id=&type=&retry="]
    assert_equal ["published"] * bodies.size, ask(bodies.map { |body| publish(body) }).map(&:verdict)
  end

  # --- cursors

  CURSORS = ["one", "two", "gone", "earliest", "", "tw%6F", "a+b", "%0A", "%FF", "%C3%A9", "%23AAAAAAAAAAA"].freeze
  CURSOR_NAMES = %w[last_event_id last%5Fevent_id lastEventID Last-Event-ID last-event-id x].freeze

  test "a stream that the gate begins begins where Web would begin it" do
    [false, true].each do |legacy|
      random = Random.new(10)
      streams = Array.new(2_000) do
        query = Array.new(random.rand(4)) { "#{pick(CURSOR_NAMES, random)}#{"=#{pick(CURSORS, random)}" unless random.rand(9) == 0}" }
        headers = (random.rand(2) == 0) ? [["Last-Event-ID", pick(["one", "two", "", "gone", "earliest", "caf\xC3\xA9"], random)]] : []
        headers << ["Hikyaku-Stream", pick(["1", "matchers", "", "x"], random)] if random.rand(2) == 0
        Asked.new(method: "GET", query: ["match=/a", *query].shuffle(random: random).join("&"), version: "1.1", headers: [["Host", "hub.example.com"], *headers])
      end
      events = [publish("topic=/a&id=one"), publish("topic=/a&id=two")]
      web = web(legacy: legacy)
      events.each { |event| assert_equal 200, web.call(env_of(event)).first }
      begun = streams.zip(ask(events + streams, legacy: legacy).drop(2)).count do |request, answer|
        next if answer.verdict == "asked"

        assert_equal "subscribed", answer.verdict
        status, headers, body = web.call(env_of(request))
        body.close if body.respond_to?(:close)
        expected = headers.slice("mercure-last-event-id", "last-event-id", "hikyaku-stream").map { |name, value| "#{name}: #{value}\r\n" }.join
        assert_equal [200, without_capability("#{expected}\r\n")], [status, without_capability(answer.head)], request.to_s
      end
      assert_operator begun, :>, 1_000
    end
  end

  # --- addresses

  HOPS = %w[203.0.113.5 10.0.0.1 10.255.0.3 192.0.2.127 192.0.2.128 ::1 [::1] 2001:db8::7 2001:db8:8000::1 ::ffff:10.0.0.1 10.0.0.01 10.0.0 unknown _x 10.0.0.1:80 fe80::1%eth0 ::1%lo].push("", " ", "\t").freeze

  test "the gate finds the client behind proxies as Web does" do
    random = Random.new(11)
    requests = Array.new(3_000) do
      hops = Array.new(random.rand(5)) { "#{" " * random.rand(2)}#{(random.rand(3) == 0) ? mangled(pick(HOPS, random), random) : pick(HOPS, random)}" }
      Asked.new(method: "GET", version: "1.1", headers: [["Host", "hub.example.com"], ["X-Forwarded-For", hops.join(",").strip]])
    end
    proxies = PROXIES.map { |range| IPAddr.new(range) }
    requests.zip(ask(requests)).each do |request, answer|
      expected = Hikyaku::Web::Request.new({"REMOTE_ADDR" => "10.0.0.9", "HTTP_X_FORWARDED_FOR" => request.values("x-forwarded-for").first}, trusted_proxies: proxies).address
      assert_equal expected, answer.address, request.to_s
    end
  end

  private

  def pick(list, random) = list[random.rand(list.size)]

  def mangled(text, random)
    text = text.dup
    text[random.rand(text.size + 1), random.rand(2)] = pick([":", "::", ".", "0", "1", "f", "255", "256", "%", "[", "]"], random)
    text.delete("/,")
  end

  def web(**settings) = Hikyaku::Web.new(Hikyaku::Config.new(**SETTINGS, **settings))

  def publish(body) = Asked.new(method: "POST", version: "1.1", headers: [["Host", "hub.example.com"], ["Content-Type", FORM], ["Authorization", "Bearer #{PUBLISHER}"]], body: body)

  def random_request(random)
    publishes = random.rand(3) == 0
    query = Array.new(random.rand(4)) { pick(PARAMETERS, random) }.push("match=/a").shuffle(random: random).join("&") if !publishes && random.rand(8) > 0
    headers = [["Host", (random.rand(4) == 0) ? "evil.example" : "hub.example.com"]]
    headers << ["Authorization", pick(AUTHORIZATIONS, random)] if random.rand(3) == 0
    headers << ["Cookie", Array.new(1 + random.rand(3)) { pick(COOKIES, random) }.join(pick(["; ", ";"], random))] if random.rand(2) == 0
    names = publishes ? ["Origin", "Referer", "X-Forwarded-Proto", *OTHERS.keys.sample(2, random: random)] : OTHERS.keys.sample(random.rand(5), random: random)
    names.uniq.each { |name| headers << [name, pick(OTHERS[name], random)] if random.rand(4) > 0 }
    headers << ["Content-Type", FORM] if publishes && headers.assoc("Content-Type").nil? && random.rand(4) > 0
    Asked.new(method: publishes ? "POST" : "GET", query: query, version: (random.rand(8) == 0) ? "1.0" : "1.1", headers: headers.shuffle(random: random), body: ("topic=/a&data=x" if publishes))
  end

  def ask(requests, legacy: false)
    fields = legacy ? ["L"] : []
    PROXIES.each do |range|
      ip = IPAddr.new(range)
      fields.push("T", ip.ipv4? ? "4" : "6", ip.prefix.to_s, ip.hton)
    end
    lines = EngineDump.new("gate").ask(fields + requests.flat_map { |request| ["R", request.to_s, "10.0.0.9"] })
    assert_equal requests.size, lines.size
    lines.map { |line| Answered.new(*line.chomp(" ").split(/ /, -1).map { |hex| [hex].pack("H*") }) }
  end

  # As servers take it from what a proxy says.
  def scheme_of(request)
    said = request.headers.to_h { |name, value| [name.downcase, value] }
    (said["x-forwarded-proto"] == "https" || said["x-forwarded-scheme"] == "https" || said["x-forwarded-ssl"] == "on") ? "https" : "http"
  end

  def env_of(request)
    env = {"REQUEST_METHOD" => request.method, "SCRIPT_NAME" => "", "PATH_INFO" => HUB, "QUERY_STRING" => request.query.to_s, "rack.url_scheme" => scheme_of(request),
           "SERVER_PROTOCOL" => "HTTP/#{request.version}", "rack.input" => StringIO.new(request.body.to_s.b), GRANT => nil}
    env["CONTENT_LENGTH"] = request.body.bytesize.to_s if request.body
    request.headers.each do |name, value|
      name = name.upcase.tr("-", "_")
      env[(name == "CONTENT_TYPE") ? name : "HTTP_#{name}"] = value.strip.b
    end
    env
  end

  # As a server makes it of what the gate shows.
  def shown_env(request, answer)
    headers = answer.headers.lines(chomp: true).flat_map { |name| request.values(name).map { |value| [name, value] } }
    headers << ["Cookie", answer.cookie] unless answer.cookie.empty?
    env_of(Asked.new(**request.to_h, query: answer.query, headers: headers)).merge("REMOTE_ADDR" => answer.address)
  end

  def outcome(web, env)
    status, headers, body = web.call(env)
    grant = env[GRANT]
    granted = grant && [:subject, :issuer, :expires_at, :issued_at, :payloads, :matchers, :reads, :publishes].map { |name| plain(grant.public_send(name)) }
    address = body.subscriber.address if body.respond_to?(:subscriber)
    text = body.respond_to?(:each) ? body.each.to_a.join.sub(/\A#.{11}\z/, "#") : ""
    body.close if body.respond_to?(:close)
    [status, headers.merge(headers.slice("hikyaku-stream").transform_values(&:size)), granted, address, text]
  end

  def without_capability(head) = head.sub(/^hikyaku-stream: [\w-]{22}\r$/, "hikyaku-stream: …\r")

  def plain(value) = (value.is_a?(Array) && value.first.respond_to?(:pattern)) ? value.map { |matcher| [matcher.type, matcher.pattern] } : value

  def from_ruby(request)
    @publishing ||= web
    status, _, body = @publishing.call(env_of(request))
    assert_equal 200, status, request.body
    record = @publishing.hub.drive { |engine| engine.instance_variable_get(:@log).then { |log| log[log.head] } }
    [body.first.b.sub(/\A#.{11}\z/m, "#"), record.topics.map { |topic| topic.value.b }, record.private? ? "private" : "", without_id(record.frame, body.first.b)]
  end

  def without_id(frame, id) = id.start_with?("#") ? frame.sub("id: #{id}", "id: #") : frame
end
