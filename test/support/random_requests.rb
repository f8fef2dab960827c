# frozen_string_literal: true

require "json"
require "openssl"
require_relative "access_tokens"

# Requests to a hub, of values that are drawn from a few: so that all of them come again, in new company. What decides is among
# them, what does not, and what looks as if it did.
class RandomRequests
  include AccessTokens

  PATH = "/.well-known/mercure"
  OTHER_ISSUER = "https://es.example.com"
  ALLOWED = "https://allowed.example"
  COOKIE = "__Secure-mercure_access_token"
  FORM = "application/x-www-form-urlencoded"
  # Seconds for which the token lives that ends in between.
  SHORT = 4
  # All of them read this topic, so that its updates mark the end of what a stream has.
  MARK = "/mark"
  # The same matchers in other words, others in nearly the same, and what does not decide between them.
  QUERIES = [
    "match=/a", "match=%2Fa", "m%61tch=/a", "match=%2fa", "match=/a&x=1", "x=1&match=/a", "match=/a&&", "Match=/a", "match=/a&match=/b", "match=/b&match=/a",
    "match=/b", "match_exact=/a", "match_urlpattern=/:x", "match_urlpattern=/a", "match=*", "topic=/a", "topic=/{x}", "match=/a&topic=/b", "match=/a&matcher=x",
    "match=/a&last_event_id=urn:1", "match=/a&last_event_id=earliest", "match=/a&lastEventID=urn:2", "match=/a&Last-Event-ID=", "match=/a+b", "match=/a%20b", "match=", "match=/a%00"
  ].freeze
  BODIES = [
    "topic=/a&data=%d", "topic=/a&data=%d", "topic=/a&data=%d", "topic=%2Fa&data=%d", "data=%d&topic=/a", "topic=/b&data=%d", "topic=/a&topic=/b&data=%d", "topic=/a&data=%d&private=on", "topic=/b&data=%d&private=",
    "topic=/c&data=%d&type=t&retry=5", "topic=/a&data=%d&id=urn:%d", "data=%d", "topic=*&data=%d", "topic=/a&data=%d&retry=x", "topic=/.well-known/mercure/x&data=%d"
  ].freeze
  HEADERS = {
    "Origin" => [nil, nil, nil, ALLOWED, "https://other.example", "null"],
    "Host" => %w[hub.example.com hub.example.com allowed.example 127.0.0.1],
    "Referer" => [nil, nil, nil, nil, "#{ALLOWED}/page", "https://other.example/page", "http://hub.example.com/"],
    "User-Agent" => [nil, "a", "b"],
    "X-Forwarded-For" => [nil, nil, "192.0.2.1"]
  }.freeze
  CURSORS = [nil, nil, nil, nil, "", "earliest", "urn:1", "urn:2", "urn:unknown", "é"].freeze
  TYPES = [FORM, FORM, FORM, FORM, FORM, FORM, FORM, "#{FORM}; charset=utf-8", FORM.upcase, "text/plain", nil].freeze
  PARTS = {
    publish: [:body, :credentials, "Content-Type", *HEADERS.keys], subscribe: [:query, :credentials, "Last-Event-ID", *HEADERS.keys]
  }.freeze
  private_constant :QUERIES, :BODIES, :HEADERS, :CURSORS, :TYPES, :PARTS

  # @param random [Random]
  # @param short_until [Integer] seconds since 1970 at which one of the tokens ends
  def initialize(random, short_until:)
    @random = random
    @number = 0
    @earlier = []
    @tokens = tokens(short_until)
  end

  # The configuration of a hub for which some of the tokens are good.
  def self.configuration
    {"issuers" => [{"issuer" => OTHER_ISSUER, "publisher_key" => key.public_to_pem, "subscriber_key" => key.public_to_pem, "alg" => "ES256"}]}
  end

  def self.key = @key ||= OpenSSL::PKey::EC.generate("prime256v1")

  # Every second one is an earlier one again, in which at most one value is another.
  #
  # @return [Array(Symbol, String)] :publish or :subscribe, and the bytes of the request
  def next
    values = (@random.rand < 0.5 && @earlier.any?) ? varied(one(@earlier)) : drawn(one(%i[publish subscribe subscribe]))
    @earlier << values
    [values[:kind], write(values)]
  end

  private

  def one(values) = values[@random.rand(values.size)]

  def drawn(kind) = ([:kind] + PARTS.fetch(kind)).to_h { |part| [part, (part == :kind) ? kind : draw(kind, part)] }

  def varied(values)
    kind = values[:kind]
    part = one(PARTS.fetch(kind) + [nil])
    part ? values.merge(part => draw(kind, part)) : values
  end

  def draw(kind, part)
    case part
    when :query then one(QUERIES)
    when :body then one(BODIES)
    when :credentials then credentials((kind == :publish) ? :publisher : :subscriber)
    when "Last-Event-ID" then one(CURSORS)
    when "Content-Type" then one(TYPES)
    else one(HEADERS.fetch(part))
    end
  end

  def write(values)
    in_query, headers = values[:credentials].partition { |place, _| place == :query }
    headers += values.select { |part, _| part.is_a?(String) }.to_a
    return request("GET #{PATH}?#{[values[:query], *in_query.map(&:last), "match=#{MARK}"].join("&")} HTTP/1.1", headers) if values[:query]
    @number += 1
    body = values[:body].gsub("%d", @number.to_s)
    request("POST #{PATH} HTTP/1.1", headers + [["Content-Length", body.bytesize.to_s]], body)
  end

  def request(line, headers, body = "")
    lines = headers.filter_map { |name, value| "#{name}: #{value}\r\n".b if value }
    "#{line}\r\n".b << lines.shuffle(random: @random).join << "\r\n" << body
  end

  # Where they may be, or may look as if they were.
  def credentials(role)
    token = any(role)
    case @random.rand(12)
    when 0..4 then [["Authorization", "#{one(%w[Bearer Bearer Bearer bearer])} #{token}"]]
    when 5..7 then [["Cookie", cookies(token, role)]]
    when 8 then [["Authorization", "Bearer #{token}"], ["Cookie", cookies(any(role), role)]]
    when 9 then (role == :subscriber) ? [[:query, "authorization=#{token}"]] : [["Authorization", "Basic #{token[0, 8]}"]]
    when 10 then [["Cookie", "a=#{token}; b=2"]]
    else []
    end
  end

  def cookies(token, role)
    mine = "#{one([COOKIE, COOKIE, COOKIE, "mercureAuthorization"])}=#{token}"
    [mine, *["a=1", "session=#{@random.rand(4)}", "x#{COOKIE}=no", "#{COOKIE}=#{any(role)}"].sample(@random.rand(3), random: @random)]
      .shuffle(random: @random).join(one(["; ", ";", " ; "]))
  end

  # Mostly a good one of this role.
  def any(role)
    good, bad, others = @tokens.values_at(role, [role, :bad], :others)
    case @random.rand(10)
    when 0..6 then one(good)
    when 7, 8 then one(bad)
    else one(others)
    end
  end

  # Good ones that differ in whom and what they mean, and all that can be wrong with one.
  def tokens(short_until)
    by_role = %i[publisher subscriber].flat_map do |role|
      good = [
        token(role, "/a", sub: "ann"), token(role, "/b", sub: "bob"), token(role, "*", sub: "carol"), token(role, urlpattern("/:x"), sub: "ann"),
        token(role, "/a", sub: "ann", exp: short_until), token(role, "*", key: self.class.key, alg: "ES256", iss: OTHER_ISSUER, sub: "ann")
      ]
      bad = [
        token(role, "/a", exp: Time.now.to_i - 1), token(role, "/a", aud: "https://other.example"), token(role, "/a", iss: OTHER_ISSUER),
        token(role, "/a", key: "not the key of this issuer, but one of 32 bytes"), good.first.chop
      ]
      [[role, good], [[role, :bad], bad]]
    end
    others = by_role.to_h.values_at(:publisher, :subscriber).flatten + ["x.y.z", ""]
    others += [legacy_token(:subscriber, {"subscribe" => ["/a"]}), legacy_token(:publisher, {"publish" => ["/a"]})]
    by_role.to_h.merge(others: others)
  end
end
