# frozen_string_literal: true

require_relative "cli_helper"
require "json"
require "minitest/mock"
require "msgpack"
require "hikyaku/cli/inspect"
require "support/running_hub"
require "support/scripted_server"
require "tmpdir"
require "zlib"

class CLIInspectTest < Minitest::Test
  include CommandLine

  OBJECT = {"id" => 1, "name" => "Dune", "tags" => %w[a b], "data" => "\xff".b}.freeze
  TEXT = "{\"id\": 1, \"name\": \"Dune\", \"tags\": [\"a\", \"b\"], \"data\": bin(1, ff)}\n"
  BYTES = MessagePack.pack(OBJECT).freeze
  PACKED = {"content-type" => "application/vnd.msgpack"}.freeze

  def teardown
    @server&.close
  end

  def file(bytes, name = "body")
    Dir.mktmpdir do |dir|
      path = File.join(dir, name)
      File.binwrite(path, bytes)
      yield path
    end
  end

  def served(*answer)
    @server = ScriptedServer.new(->(peer) { peer.answer_all(*answer) })
    @server.url
  end

  def streamed(*pieces, headers: {}, open: true)
    @server = ScriptedServer.new(lambda do |peer|
      peer.read_request
      peer.answer(200, "", {"content-length" => nil, "x-accel-buffering" => "no", "connection" => "close", **PACKED, **headers})
      pieces.each { |piece| peer.write(piece) }
      peer.wait_for_close if open
    end)
    @server.url
  end

  test "a file, a compressed file and the standard input are shown" do
    file(BYTES) { |path| assert_equal TEXT, done("inspect", path) }
    file(Zlib.gzip(BYTES)) { |path| assert_equal TEXT, done("inspect", path) }
    assert_equal TEXT, done("inspect", "-", stdin: BYTES)
    assert_equal "{\"a\": 1.0}\n", done("inspect", "-", stdin: '{"a":1.0}')
    file("{}") { |path| assert_equal "-3\n", done("inspect", "--type", "msgpack", path.tap { File.binwrite(path, "\xfd") }) }
  end

  test "files in br and zstd are shown" do
    require "brotli"
    require "zstd-ruby"
    file(Brotli.deflate(BYTES), "body.br") { |path| assert_equal TEXT, done("inspect", path) }
    file(Zstd.compress(BYTES)) { |path| assert_equal TEXT, done("inspect", path) }
  end

  test "a URL is asked for MessagePack in any coding, and shown" do
    url = served(200, Zlib.gzip(BYTES), {"content-encoding" => "gzip", **PACKED})
    assert_equal TEXT, done("inspect", "--header", "X-A: b", url)
    request = @server.requests.first
    assert_equal ["application/vnd.msgpack, application/json;q=0.9, */*;q=0.1", "b"], [request["accept"], request["x-a"]]
    assert_match(/\bgzip\b/, request["accept-encoding"])
  end

  test "what is asked for can be said" do
    url = served(200, "[1]", {"content-type" => "application/json"})
    assert_equal "[1]\n", done("inspect", "--accept", "application/json", "--header", "Accept-Encoding: identity", url)
    assert_equal %w[application/json identity], @server.requests.first.headers.values_at("accept", "accept-encoding")
  end

  test "what is said with --header stands in place of what is sent without" do
    heads = []
    @server = ScriptedServer.new(lambda do |peer|
      heads << peer.io.gets("\r\n\r\n")
      peer.answer(200, "[1]")
    end)
    done("inspect", "--header", "accept: text/x", "--header", "ACCEPT-ENCODING: identity", @server.url)
    assert_equal ["accept-encoding: identity", "accept: text/x"], heads.first.lines(chomp: true).grep(/\Aaccept/i).map(&:downcase).sort
  end

  test "an answer that is none is shown, and said" do
    result = hikyaku("inspect", served(404, '{"title":"gone"}', {"content-type" => "application/problem+json"}))
    assert_equal [1, "{\"title\": \"gone\"}\n", "hikyaku: #{@server.url}: 404\n"], result.to_a
  end

  test "who asks is nobody's business" do
    url = served(404, "\x92\x01".b, PACKED).sub("//", "//ada:s3cret@")
    refute_match(/s3cret/, hikyaku("inspect", url).err)
    refute_match(/s3cret/, hikyaku("inspect", "--max-bytes", "1", url).err)
    assert_includes hikyaku("inspect", url).err, "#{@server.url} is broken at byte 2"
  end

  test "a reader of the output that goes away is quiet" do
    out = Object.new
    def out.puts(*) = raise(Errno::EPIPE)
    err = StringIO.new
    file(BYTES) { |path| assert_equal 141, Hikyaku::CLI.run(["inspect", path], stdout: out, stderr: err, env: {}) }
    assert_empty err.string
  end

  test "the stream of a hub is shown as it comes" do
    hub = RunningHub.new
    command = Thread.new { hikyaku("inspect", "--count", "3", "#{hub.url}?match=*") }
    ids = []
    ids << hub.publish({"topic" => "https://example.com/books/1", "data" => "{}"}) until command.join(0.05)
    assert_equal [0, ""], [command.value.code, command.value.err]
    lines = command.value.out.lines(chomp: true)
    assert_equal 3, lines.size
    assert_empty lines - ids.map { |id| "[\"#{id}\", null, \"{}\"]" } - %w[null true]
    assert(lines.any? { |line| line.start_with?("[") }, lines.inspect)
  ensure
    hub&.stop
  end

  test "what is neither MessagePack nor JSON is refused, unless it is said to be" do
    url = served(200, "<p>", {"content-type" => "text/html; charset=utf-8"})
    assert_includes refused("inspect", url, code: 1), "200, and text/html is neither MessagePack nor JSON: --type"
    assert_equal "<p>", done("inspect", "--raw", url)
    assert_equal "60\n112\n62\n", done("inspect", "--type", "msgpack", url)
    assert_includes refused("inspect", "-", code: 1, stdin: "hello"), "is neither MessagePack nor JSON"
  end

  test "an event stream is for another command" do
    @server = ScriptedServer.new(->(peer) { peer.read_request && peer.event_stream("data: x\n\n") && peer.wait_for_close })
    assert_includes refused("inspect", @server.url, code: 1), "hikyaku subscribe shows it"
  end

  test "a broken body is shown as far as it goes, and the place is said" do
    file(BYTES.byteslice(0, 13)) do |path|
      result = hikyaku("inspect", path)
      assert_equal 1, result.code
      assert_equal "{\"id\": 1, \"name\": \"Du\" … broken at byte 13: expected 5 bytes of the fixstr that begins at byte 10, but there are 3\n", result.out
      assert_equal "hikyaku: #{path} is broken at byte 13: expected 5 bytes of the fixstr that begins at byte 10, but there are 3\n", result.err
    end
  end

  test "a terminal obeys nothing that comes" do
    object = {"\e]0;owned\a" => "\e[31m\u202e"}
    result = hikyaku("inspect", served(500, MessagePack.pack(object), PACKED))
    assert_equal "{\"\\u001b]0;owned\\u0007\": \"\\u001b[31m\\u202e\"}\n", result.out
    refute_match(/[\e\a]/, done("inspect", "--offsets", "-", stdin: MessagePack.pack(object)))
  end

  test "a body that is too long is not read on, compressed or not" do
    bomb = Zlib.gzip("\x91".b * 2_000_000)
    assert_includes refused("inspect", "--max-bytes", "1000", "-", stdin: bomb, code: 1), "longer than 1000 bytes: --max-bytes"
    assert_includes refused("inspect", "--max-bytes", "10", "-", stdin: BYTES, code: 1), "--max-bytes"
    assert_includes refused("inspect", "-", stdin: Zlib.gzip(BYTES)[0..-12], code: 1), "-: the body ended in the middle"
  end

  test "of what becomes very much no more is there at once than a little of it becomes, and the limit is looked at on the way" do
    bomb = Zlib.gzip("\x91".b * 40_000_000)
    given, limits = [], []
    make = Hikyaku::HTTP::ContentCoding.method(:decoder)
    recording = lambda do |codings, max_bytes:|
      limits << max_bytes
      decoder = make.unbind.bind_call(Hikyaku::HTTP::ContentCoding, codings, max_bytes: max_bytes)
      decoder.define_singleton_method(:<<) { |piece| super(piece).tap { |bytes| given << bytes.bytesize } }
      decoder
    end
    Hikyaku::HTTP::ContentCoding.stub(:decoder, recording) do
      refused("inspect", "--max-bytes", "10000000", "-", stdin: bomb, code: 1)
      assert_equal [10_000_000], limits
      assert_operator given.sum, :<=, 10_000_000
      hikyaku("inspect", "--lines", "--type", "msgpack", "-", stdin: bomb)
      assert_nil limits.last
    end
    assert_operator given.max, :<, 5_000_000
  end

  test "a value of a stream that has more items than are read is refused, and each has as many" do
    limits = Hikyaku::Codec::Reading::Printer::Limits.new(entries: 2, text: 10, depth: 8, bytes: 1_000, items: 12)
    shown = []
    stream = Hikyaku::CLI::Inspect.const_get(:Lines).new(limits: limits, max_bytes: 1_000, type: :msgpack)
    stream.each_of(MessagePack.pack([1] * 10) * 3) { |line| shown << line }
    assert_equal ["[1, 1, … 8 more]"] * 3, shown
    error = assert_raises(Hikyaku::CLI::Failed) { stream.each_of(MessagePack.pack([1] * 11)) { flunk "it has too many" } }
    assert_equal "a value has more than 12 items: --all reads on", error.message
  end

  test "of what is long the beginning is shown, and with --all everything" do
    bytes = MessagePack.pack([7] * 1100)
    assert_match(/… 100 more\n\]\n\z/, done("inspect", "-", stdin: bytes))
    assert_equal 1100, done("inspect", "--all", "-", stdin: bytes).scan("7").size
  end

  test "the offsets are those in the body" do
    assert_equal ["0  fixmap            {4", "1  fixstr              \"id\":"], done("inspect", "--offsets", "-", stdin: BYTES).lines.first(2).map(&:strip)
  end

  test "the sizes are those of each representation and coding" do
    object = {"items" => Array.new(40) { |index| {"id" => index, "name" => "Item #{index}"} }}
    packed, json = MessagePack.pack(object), JSON.generate(object)
    gzipped = Zlib.gzip(packed)
    heading, *rows = done("inspect", "--sizes", served(200, gzipped, {"content-encoding" => "gzip", **PACKED})).lines(chomp: true)
    rows = rows.to_h { |row| row.split(/ {2,}/).then { |name, *cells| [name, cells] } }
    assert_equal %w[plain gzip br zstd], heading.split
    assert_equal ["as it came", "identity", "JSON", "MessagePack"], rows.keys
    assert_equal [gzipped.bytesize.to_s, "#{(100.0 * gzipped.bytesize / packed.bytesize).round} %"], rows["as it came"]
    assert_equal [number(packed.bytesize), "100 %"], rows["identity"].first(2)
    assert_equal [number(json.bytesize), "#{(100.0 * json.bytesize / packed.bytesize).round} %"], rows["JSON"].first(2)
    assert_equal rows["identity"], rows["MessagePack"]
    rows.except("as it came").each_value { |cells| assert_equal 8, cells.size }
  end

  test "sizes of what cannot be read are those of the body, and it is said why" do
    result = hikyaku("inspect", "--sizes", "-", stdin: BYTES + "\xc1".b)
    assert_equal [0, %w[as identity]], [result.code, result.out.lines.drop(1).map { |line| line[/\w+/] }]
    assert_match(/\Ahikyaku: not in other representations: /, result.err)
  end

  test "the body itself is written with its codings undone" do
    assert_equal BYTES, done("inspect", "--raw", "-", stdin: Zlib.gzip(BYTES)).b
  end

  test "the values of a stream are shown in lines as they come" do
    event = MessagePack.pack(["urn:1", nil, "{\"a\":1}\nb"])
    url = streamed("\xc3".b + event.byteslice(0, 5), event.byteslice(5..), "\xc0".b, event, open: true)
    assert_equal <<~'TEXT', done("inspect", "--count", "4", url)
      true
      ["urn:1", null, "{\"a\":1}\nb"]
      null
      ["urn:1", null, "{\"a\":1}\nb"]
    TEXT
  end

  test "a stream that nobody may keep back is shown in lines without being asked, until it ends" do
    assert_equal "[#{(["1"] * 80).join(", ")}]\nnull\n", done("inspect", streamed(MessagePack.pack([1] * 80), "\xc0".b, open: false))
  end

  test "a compressed stream is shown as it comes" do
    deflate = Zlib::Deflate.new(6, 31)
    first = deflate.deflate(MessagePack.pack([1, "x"]), Zlib::SYNC_FLUSH)
    assert_equal "[1, \"x\"]\n", done("inspect", "--count", "1", streamed(first, headers: {"content-encoding" => "gzip"}))
  end

  test "a stream that ends in the middle of a value, or has one that is too long, is broken" do
    result = hikyaku("inspect", streamed("\xc0\x92\x01".b, open: false))
    assert_equal [1, "null\n"], [result.code, result.out]
    assert_match(/is broken at byte 3: expected entry 2 of 2/, result.err)
    @server.close
    result = hikyaku("inspect", "--max-bytes", "100", streamed("\xc0\xdb\x7f\xff\xff\xff".b))
    assert_match(/is broken at byte 1: a str 32 of 2,147,483,647 bytes begins here, and the value may have 100 in all/, result.err)
  end

  test "JSON in lines is shown in lines" do
    assert_equal "{\"a\": 1}\n[2]\n", done("inspect", "--lines", "-", stdin: "{\"a\":1}\n\n[2]")
    assert_equal "{\"a\": 1}\n", done("inspect", "--count", "1", "-", stdin: "{\"a\":1}\n[2]\n")
  end

  test "several values in a file have a line each" do
    assert_equal "1\n[2]\n", done("inspect", "--type", "msgpack", "-", stdin: "\x01\x91\x02".b)
  end

  test "no body is said to be none" do
    assert_equal [0, "", "hikyaku: -: there is no body\n"], hikyaku("inspect", "-").to_a
  end

  test "what cannot be understood, or is not there, is said in one line" do
    assert_includes refused("inspect"), "give a URL, a FILE or -; see hikyaku inspect --help"
    assert_includes refused("inspect", "--sizes", "--raw", "x"), "give one of --sizes"
    assert_includes refused("inspect", "--sizes", "--lines", "x"), "give one of --sizes"
    assert_includes refused("inspect", "--type", "xml", "x"), "--type: expected msgpack or json"
    assert_includes refused("inspect", "--max-bytes", "-1", "x"), "--max-bytes: expected a whole number"
    assert_includes refused("inspect", "--count", "0", "x"), "--count: expected a whole number"
    assert_includes refused("inspect", "--timeout", "soon", "x"), "--timeout: expected seconds"
    assert_includes refused("inspect", "--header", "x", "x"), "--header: expected 'Name: value'"
    assert_includes refused("inspect", "/does/not/exist", code: 1), "/does/not/exist cannot be read: no such file or directory"
    assert_includes refused("inspect", "/", code: 1), "/ cannot be read: is a directory"
    assert_includes refused("inspect", "http://[", code: 2), "http://["
    assert_match(/header|field/i, refused("inspect", "--header", "A: b\nc: d", "http://127.0.0.1:1/", code: 2))
    assert_includes refused("inspect", "http://127.0.0.1:1/", code: 1), "127.0.0.1"
  end

  private

  def number(count) = count.to_s.gsub(/\B(?=(?:\d{3})+\z)/, ",")
end
