# frozen_string_literal: true

require "test_helper"
require "hikyaku/client/event_source"
require "support/scripted_server"
require "zlib"

# HTML standard, section "Server-sent events", and what EventSource adds to it.
class EventSourceTest < Minitest::Test
  E = Hikyaku::EventSource
  GONE = ->(peer) { peer.answer(204, "", "content-length" => nil) if peer.read_request }

  # A stream that says "come back at once" and ends.
  def self.stream(bytes, headers = {})
    lambda do |peer|
      peer.read_request
      peer.event_stream("#{"retry: 0\n" unless bytes.start_with?("retry")}#{bytes}", headers)
    end
  end

  # A stream that stays open.
  def self.lasting(bytes = "")
    lambda do |peer|
      peer.read_request
      peer.event_stream(bytes)
      peer.wait_for_close
    end
  end

  def self.status(status, headers = {}) = ->(peer) { peer.answer(status, "no", headers) if peer.read_request }

  def setup
    @errors = []
    @pauses = []
  end

  def serve(*script, **options)
    @server = ScriptedServer.new(*script, **options)
  end

  # With pauses that are written down in place of waiting.
  def source(url = @server.url, **settings)
    @source = E.new(url, retry_seconds: 1, on_error: ->(error) { @errors << error }, **settings)
    pauses = @pauses
    @source.instance_variable_get(:@backoff).define_singleton_method(:next_pause) do |**options|
      pauses << super(**options)
      0
    end
    @source
  end

  def received(...)
    source(...).map(&:data)
  end

  def teardown
    @source&.close
    @server&.close
  end

  def sent(name) = @server.requests.map { |request| request[name] }

  # -- the request and the stream

  test "asks as the standard says, with the caller's parameters" do
    serve(GONE, path: "/hub?tenant=7")
    received(params: {match: ["a b", "ü&"], match_urlpattern: "/:x"}, headers: {"X-Tenant" => 7}, token: "t0ken", last_event_id: "é#1")
    request = @server.requests.first
    assert_equal ["GET", "/hub?tenant=7&match=a+b&match=%C3%BC%26&match_urlpattern=%2F%3Ax", ""], [request.verb, request.target, request.body]
    assert_equal ["text/event-stream", "no-store", "7", "Bearer t0ken", "é#1"],
      [*request.headers.values_at("accept", "cache-control", "x-tenant", "authorization"), request["last-event-id"].dup.force_encoding("UTF-8")]
  end

  test "without a last event id none is sent" do
    serve(GONE)
    received
    assert_equal [nil], sent("last-event-id")
  end

  # Mercure draft-08, section "Subscription".
  test "QUERY sends the parameters in the body" do
    serve(GONE, path: "/hub?tenant=7")
    received(method: :query, params: [["match", "a"], ["match", "b"]])
    request = @server.requests.first
    assert_equal ["QUERY", "/hub?tenant=7", "match=a&match=b", "application/x-www-form-urlencoded"],
      [request.verb, request.target, request.body, request["content-type"]]
  end

  test "events come one by one while the stream stays open" do
    steps = Queue.new
    serve(lambda do |peer|
      peer.read_request
      peer.event_stream
      while (text = steps.pop)
        peer.write("data: #{text}\n\n")
      end
    end, GONE)
    seen = []
    steps << "0"
    source.each do |event|
      seen << event.data
      (seen.size == 3) ? steps.close : steps << seen.size.to_s
    end
    assert_equal %w[0 1 2], seen
  end

  {
    "until the end of the connection" => ->(peer, bytes) { peer.event_stream(bytes) },
    "with a length" => ->(peer, bytes) { peer.event_stream(bytes, "content-length" => bytes.bytesize) },
    "in chunks" => lambda do |peer, bytes|
      peer.event_stream("", "transfer-encoding" => "chunked")
      bytes.scan(/.{1,5}/mn) { |part| peer.write("#{part.bytesize.to_s(16)};x=y\r\n#{part}\r\n") }
      peer.write("0\r\n\r\n")
    end,
    "byte by byte" => lambda do |peer, bytes|
      peer.event_stream
      bytes.each_char { |byte| peer.write(byte) }
    end
  }.each do |name, send|
    test "reads a body #{name}" do
      bytes = "\uFEFFid: 1\r\ndata: ü\r\ndata: b\r\n\r\n:\r\n\r\nevent: x\rdata: c\r\r".b
      serve(lambda do |peer|
        peer.read_request
        send.call(peer, bytes)
      end, GONE)
      assert_equal [["message", "ü\nb", "1"], ["x", "c", "1"]], source.map(&:to_a)
    end
  end

  test "the type may have parameters and capitals" do
    serve(lambda do |peer|
      peer.read_request
      peer.event_stream("data: a\n\n", "content-type" => "Text/Event-Stream;charset=UTF-8")
    end, GONE)
    assert_equal ["a"], received
  end

  # Mercure draft-08, section "Reconnection".
  test "the header of the stream can be read, also before its first event" do
    serve(self.class.stream("data: a\n\n", "Mercure-Last-Event-ID" => "earliest"), GONE)
    at_open = []
    source(last_event_id: "x", on_open: -> { at_open << @source.response_headers["mercure-last-event-id"] })
    assert_nil @source.response_headers
    @source.each {}
    assert_equal [["earliest"], "text/event-stream"], [at_open, @source.response_headers["content-type"]]
  end

  # -- connecting again

  test "connects again from the last event, also when that had no data" do
    serve(self.class.stream("id: 1\ndata: a\n\n"), self.class.stream("data: b\n\nid: 2\n\n"), self.class.stream("id: 3\ndata: c\n"),
      self.class.stream("id\ndata: d\n\n"), GONE)
    assert_equal %w[a b d], received
    assert_equal [nil, "1", "2", "2", nil], sent("last-event-id")
    assert_equal "", @source.last_event_id
    assert_empty @errors, "an end is no error"
  end

  test "a broken connection is told and replaced" do
    broken = lambda do |peer|
      peer.read_request
      peer.event_stream("id: 1\ndata: a\n\n")
      peer.reset
    end
    half = lambda do |peer|
      peer.read_request
      peer.event_stream("10\r\ndata: ", "transfer-encoding" => "chunked")
    end
    serve(lambda(&:reset), broken, half, ->(peer) { peer.write("SSH-2.0\r\n") if peer.read_request }, GONE)
    received
    assert_equal [nil, nil, "1", "1", "1"], sent("last-event-id").then { |ids| Array.new(5 - ids.size) + ids }
    assert_operator @errors.size, :>=, 3
  end

  test "a connection on which nothing comes is taken for dead, one with comments is not" do
    quiet = lambda do |peer|
      peer.read_request
      peer.event_stream("data: a\n\n")
      5.times do
        sleep 0.4
        peer.write(":\n")
      end
      peer.write("data: b\n\n")
      peer.wait_for_close
    end
    serve(quiet, GONE)
    assert_equal %w[a b], received(read_timeout: 1.5)
    assert_equal [Net::ReadTimeout], @errors.map(&:class)
  end

  test "429 and server errors are tried again, when the server asks for it" do
    serve(self.class.status(503), self.class.status(429, "retry-after" => "0"), self.class.status(500), self.class.stream("data: a\n\n"), GONE)
    assert_equal ["a"], received
    assert_equal [503, 429, 500], @errors.map(&:status)
    assert_equal [nil, 0.0, nil], @errors.map(&:retry_after)
  end

  test "the server's reconnection time holds, failures double it, and a stream that opens ends that" do
    refused = self.class.status(503)
    serve(self.class.stream(""), refused, refused, self.class.stream("retry: 7000\n"), refused, self.class.stream("data: a\n\n"), GONE)
    received
    [0.1, 0.2, 0.4, 7, 14, 0.1].zip(@pauses) { |least, pause| assert_includes least..(least * 1.25), pause }
  end

  test "a Retry-After is waited for" do
    serve(self.class.status(503, "retry-after" => "1000"), GONE)
    told = Queue.new
    waiting = E.new(@server.url, on_error: ->(error) { told << error })
    reader = Thread.new { waiting.to_a }
    told.pop
    Thread.pass until reader.stop?
    assert_nil reader.join(0.05)
    assert_equal 1, @server.connections
    waiting.close
    assert_equal [], reader.value
  end

  test "a server that is not there is tried until it is" do
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    server = nil
    source("http://127.0.0.1:#{port}/")
    @source.instance_variable_set(:@on_error, lambda do |error|
      @errors << error
      next if @errors.size < 2
      server = TCPServer.new("127.0.0.1", port)
      Thread.new { GONE.call(ScriptedServer::Peer.new(server.accept, [])) }
    end)
    assert_equal [], @source.to_a
    assert_equal [Errno::ECONNREFUSED] * 2, @errors.map(&:class)
  ensure
    server&.close
  end

  # -- other forms of streams: docs/streams.md

  PACK = {"content-type" => "application/vnd.msgpack"}.freeze
  # Come back after 100 ms; [1, nil, "a"], a heartbeat, [2, "note", "b"]
  PACKED = "\x64\x93\xA11\xC0\xA1a\xC0\x93\xA12\xA4note\xA1b".b.freeze

  # A stream that says these bytes and ends.
  def self.said(bytes, headers)
    lambda do |peer|
      peer.read_request
      peer.event_stream(bytes, headers)
    end
  end

  test "asks for MessagePack and gzip where the caller wants them, and for neither where not" do
    {{} => %w[text/event-stream identity], {format: :msgpack} => ["application/vnd.msgpack, text/event-stream;q=0.9", "identity"],
     {coding: :gzip} => %w[text/event-stream gzip]}.each do |settings, fields|
      serve(GONE)
      received(**settings)
      assert_equal [fields], @server.requests.map { |request| request.headers.values_at("accept", "accept-encoding") }
      teardown
    end
  end

  test "a MessagePack stream is read, and asked for again from its last event" do
    serve(self.class.said("", PACK), self.class.said(PACKED, PACK), self.class.said("\xC0".b + PACKED + "\x93\xA13".b, "content-type" => "Application/X-MsgPack; x=y"), GONE)
    assert_equal [["message", "a", "1"], ["note", "b", "2"]] * 2, source(format: :msgpack).map(&:to_a)
    assert_equal [nil, nil, "2", "2"], sent("last-event-id")
    assert_operator @pauses[1], :<=, 0.125
    assert_empty @errors
  end

  test "what counts is what the server answers with" do
    events = "retry: 0\ndata: a\n\n"
    serve(self.class.said(events, {}), self.class.said(events, "content-encoding" => "identity"), self.class.said(Zlib.gzip(events), "content-encoding" => " X-GZIP"),
      self.class.said(Zlib.gzip(PACKED), PACK.merge("content-encoding" => "gzip")), GONE)
    assert_equal %w[a a a a b], received(format: :msgpack)
    [[{}, {"content-type" => "application/vnd.msgpack"}], [{format: :msgpack}, {"content-type" => "application/json"}], [{coding: :gzip}, {"content-encoding" => "br"}],
      [{coding: :gzip}, {"content-encoding" => "gzip, gzip"}]].each do |settings, headers|
      teardown
      serve(self.class.said("", headers))
      assert_equal 200, assert_raises(E::Refused, headers.inspect) { received(**settings) }.status
    end
  end

  test "each event of a compressed stream is there when it is flushed, and a stream that breaks has said what it said" do
    steps = Queue.new
    serve(lambda do |peer|
      peer.read_request
      peer.event_stream("", PACK.merge("content-encoding" => "gzip"))
      deflate = Zlib::Deflate.new(6, 16 + Zlib::MAX_WBITS)
      while (text = steps.pop)
        peer.write(deflate.deflate("\x93\xA1#{text}\xC0\xA1#{text}".b, [Zlib::SYNC_FLUSH, Zlib::FULL_FLUSH][text.to_i % 2]))
      end
    end, GONE)
    seen = []
    steps << "0"
    source(format: :msgpack, coding: :gzip).each do |event|
      seen << event.data
      (seen.size == 4) ? steps.close : steps << seen.size.to_s
    end
    assert_equal %w[0 1 2 3], seen
    assert_equal [nil, "3"], sent("last-event-id")
    assert_empty @errors
  end

  test "a heartbeat of a MessagePack stream is life" do
    serve(lambda do |peer|
      peer.read_request
      peer.event_stream(PACKED, PACK)
      5.times { sleep(0.4) && peer.write("\xC0") }
      peer.write(PACKED)
      peer.wait_for_close
    end, GONE)
    assert_equal %w[a b a b], received(format: :msgpack, read_timeout: 1.5)
    assert_equal [Net::ReadTimeout], @errors.map(&:class)
  end

  # None of it is what its header says.
  BROKEN = {
    "MessagePack" => [PACKED + "\xC1".b, {}], "an event" => [PACKED + "\x93\x01\x02\x03".b, {}], "depth" => [PACKED + ("\x91" * 100).b, {}],
    "gzip" => [Zlib.gzip(PACKED)[0..-9] + "\xFF\xFF\xFF\xFF\0\0\0\0".b, {"content-encoding" => "gzip"}]
  }.freeze

  BROKEN.each do |what, (bytes, headers)|
    test "broken #{what} is told, and the stream is asked for again" do
      serve(self.class.said(bytes, PACK.merge(headers)), self.class.said(PACKED, PACK), GONE)
      received(format: :msgpack)
      # What gzip gives before its fault may have been decoded, or not.
      assert_equal [nil, (what == "gzip") ? nil : "2", "2"], sent("last-event-id")
      assert_equal [E::Malformed], @errors.map(&:class)
    end
  end

  test "a stream that is broken again and again is asked for less and less, until an event comes" do
    broken = self.class.said("\xC1", PACK)
    serve(broken, broken, broken, self.class.said("\xC0", PACK), broken, self.class.said(PACKED, PACK), broken, GONE)
    received(format: :msgpack)
    [1, 2, 4, 8, 16, 0.1, 0.1].zip(@pauses) { |least, pause| assert_includes least..(least * 1.25), pause, @pauses.inspect }
  end

  test "a value that is too large ends it with an error, also one that is small as it comes" do
    {PACKED + "\xDB\x00\x00\x10\x01".b => {}, Zlib.gzip(PACKED + "\xDB\x00\xFF\xFF\xFF".b + "\0" * 16_777_215) => {"content-encoding" => "gzip"},
     Zlib.gzip("data: #{"x" * 10_000_000}") => {"content-type" => "text/event-stream", "content-encoding" => "gzip"}}.each do |bytes, headers|
      serve(self.class.said(bytes, PACK.merge(headers)))
      assert_raises(E::EventTooLarge) { received(format: :msgpack, max_event_bytes: 4_096) }
      assert_equal 1, @server.connections
      teardown
    end
  end

  test "what becomes very much is decoded bit by bit, and no more than a megabyte is held" do
    body = E::Body.new({"content-type" => "text/event-stream", "content-encoding" => "gzip"}, "", format: :events)
    sizes = []
    body.instance_variable_get(:@parser).define_singleton_method(:feed) { |bytes| sizes << bytes.bytesize }
    body.feed(Zlib.gzip(":" * 20_000_000))
    assert_equal 20_000_000, sizes.sum
    assert_operator sizes.max, :<, 1_100_000
  end

  # -- the end

  test "204 is the end" do
    serve(GONE)
    assert_equal [], received
    assert_predicate @source, :closed?
    assert_equal [], @source.to_a
    assert_equal 1, @server.connections
  end

  test "what is no event stream ends it with an error" do
    [[200, {"content-type" => "text/html"}], [200, {}], [200, {"content-type" => "text/event-streams"}], [201, {"content-type" => "text/event-stream"}],
      [400, {}], [401, {}], [403, {}], [404, {}], [304, {}], [300, {}], [301, {}]].each do |status, headers|
      serve(self.class.status(status, headers))
      error = assert_raises(E::Refused, status.to_s) { received }
      assert_kind_of Hikyaku::Error, error
      assert_equal [status, 1], [error.status, @server.connections]
      assert_includes error.message, @server.url
      teardown
    end
  end

  test "an event that is too large ends it with an error" do
    serve(self.class.stream("data: #{"x" * 200}\n\n"))
    assert_raises(E::EventTooLarge) { received(max_event_bytes: 100) }
    assert_equal 1, @server.connections
  end

  test "close from another thread ends the reading, whatever it waits for" do
    {
      "an event" => self.class.lasting("data: a\n\n"),
      "a head" => ->(peer) { peer.read_request && peer.wait_for_close },
      "the next attempt" => self.class.status(503, "retry-after" => "1000")
    }.each do |name, step|
      serve(step)
      @source = E.new(@server.url)
      reader = Thread.new { @source.map(&:data) }
      Thread.pass until @server.requests.size == 1 && reader.stop?
      sleep 0.01
      @source.close
      assert reader.join(60), name
      assert_equal (name == "an event") ? ["a"] : [], reader.value, name
      assert_equal 1, @server.connections, name
      teardown
    end
  end

  test "close under TLS ends the reading, too" do
    certificate = ScriptedServer.certificate("localhost")
    with_file(certificate.first.to_pem) do |ca_file|
      serve(self.class.lasting("data: a\n\n"), tls: certificate)
      source(@server.url("localhost"), ca_file: ca_file, token: "t")
      seen = Queue.new
      reader = Thread.new { @source.each { |event| seen << event.data } }
      assert_equal "a", seen.pop
      @source.close
      assert reader.join(60)
      assert_equal ["Bearer t"], sent("authorization")
    end
  end

  test "close inside the block ends it after this event, and nothing is read afterwards" do
    serve(self.class.lasting("data: a\n\ndata: b\n\n"))
    seen = []
    source.each do |event|
      seen << event.data
      @source.close
    end
    assert_equal ["a"], seen
    assert_equal [], @source.to_a
  end

  test "break closes the connection, and each goes on from there" do
    gone = Queue.new
    serve(lambda do |peer|
      self.class.lasting("id: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 3\ndata: c\n\n").call(peer)
      gone << true
    end, self.class.stream("id: 3\ndata: c\n\n"), GONE)
    assert_equal %w[a b], source.first(2).map(&:data)
    assert gone.pop
    refute_predicate @source, :closed?
    assert_equal ["c"], @source.map(&:data)
    assert_equal [nil, "2", "3"], sent("last-event-id")
  end

  test "what the caller's code raises is the caller's, even when it looks like an error of the network" do
    [IOError.new, Errno::ECONNRESET.new, Net::ReadTimeout.new, OpenSSL::SSL::SSLError.new, E::Refused.new("", status: 503),
      RuntimeError.new].each do |error|
      serve(self.class.lasting("id: 1\ndata: a\n\n"))
      assert_same error, assert_raises(error.class) { source.each { raise error } }
      assert_equal ["1", 1, []], [@source.last_event_id, @server.connections, @errors]
      assert_raises(error.class) { source(on_open: -> { raise error }).to_a }
      teardown
    end
  end

  test "a Timeout around the reading is the caller's" do
    serve(self.class.lasting)
    source
    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { @source.to_a } }
    assert_empty @errors
  end

  test "two threads cannot read one source" do
    serve(self.class.lasting("data: a\n\n"))
    seen = Queue.new
    source
    reader = Thread.new { @source.each { |event| seen << event } }
    seen.pop
    assert_raises(E::AlreadyRead) { @source.to_a }
    @source.close
    reader.join
  end

  # -- tokens

  test "a callable token is asked for each connection that needs a new one, and once more after a 401" do
    count = 0
    open = 0
    step = lambda do |peer|
      request = peer.read_request
      next peer.answer(401) unless request["authorization"] == "Bearer t#{open + 2}"
      open += 1
      peer.event_stream("retry: 0\ndata: #{open}\n\n")
    end
    serve(step, step, step, step, self.class.status(401))
    error = assert_raises(E::Refused) { received(token: -> { "t#{count += 1}" }) }
    assert_equal 401, error.status
    assert_equal ["Bearer t1", "Bearer t2", "Bearer t2", "Bearer t3", "Bearer t3", "Bearer t4"], sent("authorization")
    assert_empty @errors
  end

  test "a token that does not come is waited for" do
    serve(self.class.stream("data: a\n\n"), GONE)
    answers = [-> { raise Errno::ECONNREFUSED }]
    assert_equal ["a"], received(token: -> { (answers.shift || -> { "t" }).call })
    assert_equal [Errno::ECONNREFUSED], @errors.map(&:class)
  end

  test "a token does not travel in the clear to another machine unless that is said" do
    assert_raises(Hikyaku::ConfigError) { E.new("http://hub.example.com/", token: "t") }
    assert E.new("http://hub.example.com/", token: "t", insecure: true)
    assert_raises(Hikyaku::ConfigError) { E.new("http://hub.example.com/", headers: {"Authorization" => "t"}) }
  end

  test "neither token nor parameters are shown" do
    shown = E.new("https://h.example/x?authorization=s3cret", token: "s3cret", params: {authorization: "s3cret"}, headers: {cookie: "s3cret"}).inspect
    assert_equal "#<Hikyaku::EventSource https://h.example/x>", shown
  end

  # -- redirects, sockets, certificates

  test "redirects are followed, each time from the beginning" do
    step = lambda do |peer|
      while (request = peer.read_request)
        next peer.answer(307, "x", "location" => "/b?y") if request.target == "/a?match=x"
        next peer.answer(302, "", "location" => "c", "content-length" => nil, "connection" => "close") || break if request.target == "/b?y"
        peer.event_stream("retry: 0\nid: 1\ndata: a\n\n")
        break
      end
    end
    serve(*([step] * 6), GONE, path: "/a")
    assert_equal %w[a a], received(params: {match: "x"}, token: "t", headers: {x: "y"})
    assert_equal %w[/a?match=x /b?y /c] * 2, @server.requests.first(6).map(&:target)
    assert_equal [["Bearer t", "y"]], @server.requests.map { |request| request.headers.values_at("authorization", "x") }.uniq
  end

  test "the method and its body stay, except after 303" do
    [[301, "QUERY", "match=x"], [308, "QUERY", "match=x"], [303, "GET", ""]].each do |status, verb, body|
      serve(self.class.status(status, "location" => "/b"), GONE)
      received(method: :query, params: {match: "x"})
      assert_equal [verb, "/b", body], @server.requests.last.to_h.values_at(:verb, :target, :body)
      teardown
    end
  end

  test "token and headers stay with their origin" do
    other = ScriptedServer.new(GONE)
    serve(self.class.status(302, "location" => other.url("localhost")))
    received(token: "t", headers: {cookie: "c"}, last_event_id: "7")
    assert_equal [nil, nil, "7"], other.requests.first.headers.values_at("authorization", "cookie", "last-event-id")
  ensure
    other.close
  end

  test "redirects that lead nowhere end it with an error" do
    serve(self.class.status(302, "location" => "/again"))
    assert_match(/more than 10/, assert_raises(E::Refused) { received }.message)
    assert_equal 11, @server.connections
    ["ftp://x/", "http://exa mple/", "javascript:x", "http://u:p@127.0.0.1/"].each do |location|
      teardown
      serve(self.class.status(302, "location" => location))
      assert_raises(E::Refused, location) { received }
    end
  end

  test "a certificate that cannot be verified ends it, and so does a way out of TLS" do
    certificate = ScriptedServer.certificate("localhost")
    with_file(certificate.first.to_pem) do |ca_file|
      serve(self.class.status(302, "location" => "http://localhost:1/"), tls: certificate)
      assert_match(/certificate/, assert_raises(E::Refused) { received(@server.url("localhost")) }.message)
      assert_raises(E::Refused) { received(@server.url("127.0.0.1"), ca_file: ca_file) }
      assert_empty @server.requests
      assert_match(/not encrypted/, assert_raises(E::Refused) { received(@server.url("localhost"), ca_file: ca_file) }.message)
    end
  end

  test "a Unix socket is read, also after a redirect on it" do
    Dir.mktmpdir do |folder|
      serve(self.class.status(307, "location" => "/b"), self.class.stream("data: a\n\n"), GONE, unix: "#{folder}/s")
      assert_equal ["a"], received("unix:#{folder}/s", token: "t", params: {match: "x"})
      assert_equal ["/.well-known/mercure?match=x", "/b", "/.well-known/mercure?match=x"], @server.requests.map(&:target)
      assert_equal ["Bearer t"], sent("authorization").uniq
      teardown
    end
  end

  test "settings that cannot work are refused" do
    assert_raises(Hikyaku::ConfigError) { E.new("https://h/", method: :post) }
    assert_match(/:events or :msgpack/, assert_raises(Hikyaku::ConfigError) { E.new("https://h/", format: :json) }.message)
    assert_match(/:identity or :gzip/, assert_raises(Hikyaku::ConfigError) { E.new("https://h/", coding: :br) }.message)
    assert_raises(Hikyaku::ConfigError) { E.new("h") }
    assert_raises(Hikyaku::ConfigError) { E.new("https://h/", token: "a b") }
  end

  private

  def with_file(text)
    Dir.mktmpdir do |folder|
      File.write("#{folder}/file", text)
      yield "#{folder}/file"
    end
  end
end
