# frozen_string_literal: true

require_relative "vectors"

# Messages at random: those of the vectors, whole, mixed and with a few bytes changed, and others put together from
# parts that parsers stumble over. The same seed gives the same messages.
class Messages
  METHODS = %w[GET POST HEAD PUT DELETE OPTIONS CONNECT PATCH get G@T].freeze
  TARGETS = ["/", "/a?b=c", "*", "http://a.example/x", "http://a:80?y", "a:443", "/%zz", "//", "/a b", "http://", "/\xE9", "/#x"].map(&:b).freeze
  VERSIONS = ["HTTP/1.1"] * 8 + %w[HTTP/1.0 HTTP/1.0 HTTP/2.0 HTTP/1.2 HTTP/0.9 http/1.1 HTTP/1.]
  STATUSES = ["200 OK"] * 6 + ["204 No Content", "304 Not Modified", "100 Continue", "101 Switching Protocols", "103", "404 ", "99 x", "1000 x", "500 a\tb"]
  FIELDS = [
    "Host: a", "Host: a", "Host: a:80", "host: [::1]", "Host: a b", "Host:", "Content-Length: 0", "Content-Length: 5", "Content-Length: 5", "content-length: 05",
    "Content-Length: 5, 5", "Content-Length: +5", "Content-Length: 99999999999999999999", "Content-Length: 5 ", "Content-Length : 5",
    "Transfer-Encoding: chunked", "Transfer-Encoding: chunked", "transfer-encoding: CHUNKED", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked, gzip",
    "Transfer-Encoding: identity", "Transfer-Encoding: ,chunked", "Transfer-Encoding:\vchunked", "Connection: close", "Connection: keep-alive", "Connection: Upgrade",
    "Connection: x, close ,y", "Upgrade: websocket", "Upgrade:", "Expect: 100-continue", "X: \xE9\t y", " folded", "\tfolded", "X", ":", "X-: \x00", "X\x7F: 1", "X: a\rb",
    "Cookie: a=b; c=d", "x-a_b.c: \"d\"", "Trailer: X"
  ].map(&:b).freeze
  BODIES = ["", "hello", "5\r\nhello\r\n0\r\n\r\n", "5;a=b\r\nhello\r\n0;c=\"d\"\r\nX: y\r\n\r\n", "0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5 \r\nhello\r\n0\r\n\r\n",
    "05\r\nhel", "0x5\r\nhello\r\n0\r\n\r\n", "5\r\nhelloo\r\n0\r\n\r\n", "FFFFFFFFFFFFFFFFF\r\n", "1;\r\nx\r\n0\r\n\r\n", "0\r\nContent-Length: 5\r\n\r\n", "0\r\n x\r\n\r\n"].freeze
  TELLING = "\r\n\t \0:;,=&?#%/\\\"'()[]{}@*.+-_019azAFGZ\x7F\x80\xFF".b.chars.freeze
  LINE_ENDS = ["\r\n"] * 40 + ["\n", "\r", "\r\r\n", "\n\r\n"]
  private_constant(*constants(false))

  # @param random [Random]
  def initialize(random)
    @random = random
    @vectors = Vectors.all.group_by(&:kind).transform_values { |vectors| vectors.map(&:bytes).reject(&:empty?) }
  end

  # @param kind [Symbol] :request or :response
  # @return [String] what arrives on one connection
  def next(kind)
    case @random.rand(5)
    when 0 then pick(@vectors.fetch(kind))
    when 1 then changed(pick(@vectors.fetch(kind)))
    when 2 then mixed(pick(@vectors.fetch(kind)), pick(@vectors.fetch(kind)))
    when 3 then Array.new(1 + @random.rand(2)) { built(kind) }.join
    else changed(built(kind))
    end
  end

  private

  def pick(list) = list[@random.rand(list.size)]

  def built(kind)
    start = (kind == :request) ? "#{pick(METHODS)} ".b + pick(TARGETS) + " #{pick(VERSIONS)}" : "#{pick(VERSIONS)} #{pick(STATUSES)}"
    fields = Array.new(@random.rand(5)) { pick(FIELDS) }
    fields.unshift("Host: a") if kind == :request && @random.rand(4) > 0
    [start, *fields, ""].map { |line| line.b + pick(LINE_ENDS) }.join + pick(BODIES)
  end

  def changed(bytes)
    (1 + @random.rand(3)).times.reduce(bytes) { |each, _| change(each) }
  end

  def change(bytes)
    at = @random.rand(bytes.bytesize + 1)
    before = bytes.byteslice(0, at)
    after = bytes.byteslice(at, bytes.bytesize)
    count = @random.rand(4)
    case @random.rand(5)
    when 0 then before + pick(TELLING) + after.byteslice(1..).to_s
    when 1 then before + pick(TELLING) + after
    when 2 then before + after.byteslice(count..).to_s
    when 3 then before + after.byteslice(0, count) + after
    else before + @random.bytes(1) + after.byteslice(1..).to_s
    end
  end

  def mixed(one, other)
    one = one.lines
    other = other.lines
    (one.take(@random.rand(one.size + 1)) + other.drop(@random.rand(other.size + 1))).join
  end
end
