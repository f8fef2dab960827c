# frozen_string_literal: true

require "open3"
require "support/format_readers"
require "support/protocol_test"
require "support/self_signed"
require "timeout"

# Streams in other formats than Server-Sent Events, and compressed ones: RFC 9110, sections 12.5.1 (Accept), 12.5.3 (Accept-Encoding) and 12.5.5 (Vary).
class Protocol::FormatsTest < Protocol::Test
  PACK = "application/vnd.msgpack"
  EVENTS = "text/event-stream"

  # A stream whose bytes are looked at as they come.
  class Raw
    def initialize(client, target, headers)
      @connection = client.connect
      lines = {"host" => "hub.example.com"}.merge(headers).map { |name, value| "#{name}: #{value}\r\n" }
      @connection.write("GET #{target} HTTP/1.1\r\n#{lines.join}\r\n")
      @head = @connection.head(HttpClient.now + HttpClient::PATIENCE)
    end

    def status = @head.status

    def [](name) = @head[name]

    # Gives what comes to a reader until that has what is wanted; meanwhile nothing more is published.
    def feed(reader, seconds = 60)
      deadline = HttpClient.now + seconds
      reader << (@connection.body_part(deadline) or raise EOFError, "the stream ended") until yield
    end

    def rest(seconds = 60)
      deadline = HttpClient.now + seconds
      bytes = +"".b
      while (part = @connection.body_part(deadline))
        bytes << part
      end
      bytes
    end

    def close = @connection.close
  end

  # The engine in Ruby does not compress, nor does one in C that was compiled without zlib.
  COMPRESSES = HubServer::ENGINE != "ruby"

  def skip_unless_compressing
    skip_unless_available(headers: "zlib.h") if COMPRESSES && !hub.offers?(:events, :gzip)
  end

  # @return [Raw] on this test's topic
  def raw(headers = nil, **more)
    skip_unless_compressing if (headers.to_h["accept-encoding"] || more["accept-encoding"]).to_s.include?("gzip")
    Raw.new(client, "#{server.path}?#{form("match" => topic)}", {**headers.to_h, **more}).tap { |raw| @streams << raw }
  end

  # [Accept, Accept-Encoding] and what is answered: type and coding.
  ANSWERS = {
    [nil, nil] => [EVENTS, nil], [EVENTS, nil] => [EVENTS, nil], ["*/*", nil] => [EVENTS, nil], ["text/*", nil] => [EVENTS, nil], ["", ""] => [EVENTS, nil],
    [PACK, nil] => [PACK, nil], ["application/msgpack", nil] => [PACK, nil], ["application/x-msgpack", nil] => [PACK, nil], ["Application/X-MPAC", nil] => [PACK, nil],
    ["application/*", nil] => [PACK, nil], ["#{PACK}, #{EVENTS}", nil] => [EVENTS, nil], ["#{PACK}, #{EVENTS};q=0.9", nil] => [PACK, nil],
    ["#{PACK};q=0.9, #{EVENTS}", nil] => [EVENTS, nil], ["#{PACK}, */*;q=0.1", nil] => [PACK, nil], ["#{PACK};q=0, */*", nil] => [EVENTS, nil],
    ["#{EVENTS};q=0, */*", nil] => [PACK, nil], ["*/*, #{PACK};version=1;q=0.5", nil] => [EVENTS, nil], ["text/html, */*;q=0.8", nil] => [EVENTS, nil],
    ["#{PACK};q=2, #{EVENTS}", nil] => [EVENTS, nil], [";;,,;q=", nil] => [EVENTS, nil],
    [nil, "gzip"] => [EVENTS, "gzip"], [nil, "gzip, deflate, br, zstd"] => [EVENTS, "gzip"], [nil, "X-GZIP"] => [EVENTS, "gzip"], [PACK, "gzip;q=0.5"] => [PACK, "gzip"],
    [nil, "gzip;q=0"] => [EVENTS, nil], [nil, "br, zstd, deflate"] => [EVENTS, nil], [nil, "identity"] => [EVENTS, nil], [nil, "*"] => [EVENTS, nil],
    [nil, "gzip;q=0.5, identity"] => [EVENTS, nil], [nil, "gzip, identity"] => [EVENTS, "gzip"], [nil, "gzip;q=1.0,deflate;q=0.6,identity;q=0.3"] => [EVENTS, "gzip"],
    [nil, "identity;q=0, *"] => [EVENTS, "gzip"], [nil, "*;q=0, gzip"] => [EVENTS, "gzip"], [nil, "identity;q=0, gzip;q=0.1"] => [EVENTS, "gzip"]
  }.freeze

  # What ANSWERS become: a hub that does not compress answers without a coding, or with 406 where the client refuses that.
  def each_answer
    ANSWERS.each do |(accept, coding), (type, coded)|
      headers = {"accept" => accept, "accept-encoding" => coding}.compact
      next yield headers, [200, type, coded] if COMPRESSES || coded.nil?
      coding.match?(/(identity|\*);q=0(,|\z)/) ? yield(headers, [406, "application/problem+json", nil]) : yield(headers, [200, type, nil])
    end
  end

  test "format and coding are what the client prefers, and one without preferences gets an event stream" do
    each_answer do |headers, answer|
      stream = raw(headers)
      assert_equal answer, [stream.status, stream["content-type"], stream["content-encoding"]], headers.inspect
      assert_equal "Accept, Accept-Encoding", stream["vary"]
      assert_includes stream["cache-control"], "no-store"
      stream.close
    end
  end

  test "HEAD tells the same as GET would" do
    skip_unless_compressing
    each_answer do |headers, answer|
      response = get("#{server.path}?#{form("match" => topic)}", method: "HEAD", headers: headers)
      assert_equal [*answer, "Accept, Accept-Encoding"], [response.status, *%w[content-type content-encoding vary].map { |name| response[name] }]
      assert_empty response.body
    end
  end

  test "who takes neither form, or no coding at all, is told which there are" do
    [[{"accept" => "application/json"}, PACK], [{"accept" => "#{EVENTS};q=0, #{PACK};q=0.000"}, EVENTS], [{"accept" => "image/*, text/html"}, EVENTS],
      [{"accept-encoding" => "identity;q=0"}, "gzip"], [{"accept-encoding" => "*;q=0"}, "gzip"], [{"accept-encoding" => "gzip;q=0, identity;q=0, br"}, "gzip"]].each do |headers, offered|
      response = get("#{server.path}?#{form("match" => topic)}", headers: headers)
      assert_includes assert_problem(406, response, headers.inspect), offered
      assert_equal "Accept, Accept-Encoding", response["vary"]
    end
    assert_equal 0, hub.subscriptions(type: "exact", pattern: topic).last.size
  end

  test "long and odd fields end nowhere but in an answer" do
    [",".b * 50_000, "a/b;q=0.5," * 5_000 + PACK, "#{PACK};q=0." + "1" * 1_000, "\xFF\xFE/\x80", "*/*;q=NaN", "#{PACK};q=1e3, #{EVENTS};q=0.1", "gzip;" * 9_000].each do |value|
      %w[accept accept-encoding].each do |name|
        response = client.raw("HEAD #{server.path}?#{form("match" => topic)} HTTP/1.1\r\nhost: hub.example.com\r\nconnection: close\r\n#{name}: ".b + value.b + "\r\n\r\n".b, method: "HEAD")
        assert_includes [200, 400, 406, 413, 431], response.status
      end
    end
  end

  test "each event of a compressed stream is there at once: it waits for no other" do
    next unless COMPRESSES
    stream = raw("accept-encoding" => "gzip")
    reader = FormatReaders::Gzip.new
    stream.feed(reader) { reader.text == ":\n\n" }
    5.times do |i|
      id = publish(topic, "event #{i}")
      stream.feed(reader) { reader.text.end_with?("\n\nid: #{id}\ndata: event #{i}\n\n") }
    end
    assert_equal 5, reader.text.scan("\ndata: ").size
  end

  test "a MessagePack stream says identity, type and data, and nil for a heartbeat" do
    stream = raw("accept" => PACK)
    id = publish(topic, "one\ntwo", type: "note", retry: "1500")
    pack = FormatReaders::Pack.new
    stream.feed(pack) { pack.events.any? }
    assert_equal [nil, 1500, [id, "note", "one\ntwo"]], pack.values
  end

  test "curl decodes a stream as it comes" do
    url = "http://127.0.0.1:#{server.port}#{server.path}?#{form("match" => topic)}"
    skip_unless_available("curl")
    Open3.popen2("curl", "--silent", "--no-buffer", "--compressed", url) do |_, output, process|
      Timeout.timeout(60) do
        assert_equal ":\n", output.gets
        3.times do |i|
          publish(topic, "event #{i}")
          nil until output.gets == "data: event #{i}\n"
        end
      end
    ensure
      Process.kill("TERM", process.pid)
    end
  end

  test "when the hub stops, a stream says when to come back and ends in order, in every format" do
    start
    asked = COMPRESSES ? [[PACK, "identity"], [EVENTS, "gzip"], [PACK, "gzip"]] : [[PACK, "identity"]]
    streams = asked.map { |type, coding| raw("accept" => type, "accept-encoding" => coding) }
    publish(topic, "last")
    HubServer::OWN ? server.stop : server.web.shutdown
    pack, *compressed = streams.map(&:rest)
    texts = compressed.map do |bytes|
      reader = FormatReaders::Gzip.new << bytes
      assert_predicate reader, :finished?
      reader.text
    end
    assert_match(/\A:\n\nid: \S+\ndata: last\n\nretry: \d+\n\n\z/, texts[0]) if COMPRESSES
    [pack, *texts.drop(1)].each do |bytes|
      beat, event, delay = (FormatReaders::Pack.new << bytes).values
      assert_equal [nil, "last", true], [beat, event.last, delay.is_a?(Integer)]
    end
  end

  test "a revoked subject's compressed stream ends in order, and gets nothing more" do
    next unless COMPRESSES
    stream = raw({"accept-encoding" => "gzip", **bearer(subscriber(topic, sub: "alice"))})
    eventually { hub.stats[:subscribers] > 0 }
    publish(topic, "before")
    reader = FormatReaders::Gzip.new
    stream.feed(reader) { reader.text.include?("before") }
    server.web.disconnect(subject: "alice")
    publish(topic, "after")
    reader << stream.rest
    assert_predicate reader, :finished?
    refute_includes reader.text, "after"
  end

  test "where the server keeps the socket to itself, streams are the same" do
    start(tls: SelfSigned.context)
    stream = raw("accept" => PACK, "accept-encoding" => "gzip")
    reader = COMPRESSES ? FormatReaders::Gzip.new : FormatReaders::Identity.new
    stream.feed(reader) { reader.text == "\xC0".b }
    id = publish(topic, "event")
    stream.feed(reader) { reader.text.bytesize > 1 }
    assert_equal [nil, [id, nil, "event"]], (FormatReaders::Pack.new << reader.text).values
  end

  test "who may ask from another origin has both in Vary" do
    start(cors_origins: ["https://app.example.com"])
    stream = raw("origin" => "https://app.example.com", "accept-encoding" => "gzip")
    assert_equal %w[accept accept-encoding origin], stream["vary"].downcase.split(", ").sort
    assert_equal "https://app.example.com", stream["access-control-allow-origin"]
  end
end
