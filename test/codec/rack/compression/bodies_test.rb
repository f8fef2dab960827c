# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "rack/body_proxy"
require "rack/files"
require "support/compressing_application"
require "tmpdir"

# Bodies of every kind that Rack has, behind the compression: pieces leave when they come, and each body is closed once.
class CodecRackCompressionBodiesTest < Minitest::Test
  TEXT = "{\"name\":\"value\"}," * 200
  JSON = {"content-type" => "application/json"}.freeze
  Body = CompressingApplication::Body

  test "an Array of pieces in different encodings becomes one body" do
    pieces = ["\u00E9" * 400, "\xFF\xFE".b * 400, "", (+"\xE9").force_encoding("ISO-8859-1"), "plain"]
    answer = CompressingApplication.new(lint: false) { [200, JSON.dup, pieces] }.get
    assert_equal pieces.map(&:b).join, answer.text.b
    assert_equal 1, answer.pieces.size
  end

  test "a body in pieces is compressed piece by piece, and each can be decoded before the next is asked for" do
    decoded = +""
    pieces = Array.new(5) { |index| "piece #{index}, " }
    asked = pieces.each_index.map { |index| -> { pieces[index].tap { assert_equal pieces.take(index).join, decoded } } }
    %w[gzip br zstd].each do |name|
      decoded.clear
      body = Body.new(*asked.flat_map { |piece| [piece, ""] })
      _, headers, compressed = CompressingApplication.new { [200, JSON.dup, body] }.call(name)
      assert_equal [name, nil], headers.values_at("content-encoding", "content-length")
      decoder = decoder(name)
      compressed.each do |bytes|
        decoded << decoder.call(bytes) unless bytes.empty?
      end
      compressed.close
      assert_equal [pieces.join, 1, 1], [decoded, body.asked, body.closed]
    end
  end

  test "a body of many pieces, large and small, is the same again" do
    random = Random.new(1)
    pieces = Array.new(300) { |index| (index % 7 == 0) ? random.bytes(random.rand(40_000)) : "{\"id\":#{index}}" * random.rand(50) }
    %w[gzip br zstd].each do |name|
      assert_equal pieces.map(&:b).join.hash, CompressingApplication.new { [200, JSON.dup, Body.new(*pieces)] }.get(name).text.b.hash
    end
    %w[gzip br zstd].each { |name| assert_equal "", CompressingApplication.new { [200, JSON.dup, Body.new] }.get(name).text }
  end

  test "when a body raises in the middle, so does the compressed one, and what was sent is no whole body" do
    %w[gzip br zstd].each do |name|
      body = Body.new(TEXT, -> { raise IOError, "the database is gone" })
      _, _, compressed = CompressingApplication.new(lint: false) { [200, JSON.dup, body] }.call(name)
      sent = +"".b
      error = assert_raises(IOError) { compressed.each { |bytes| sent << bytes } }
      assert_equal "the database is gone", error.message
      2.times { compressed.close }
      assert_equal 1, body.closed
      refute_empty sent
      refute complete?(name, sent), name
    end
  end

  test "when a client goes away, the body is closed once, and the next one gets nothing of it" do
    %w[gzip br zstd].each do |name|
      body = Body.new("a secret" * 100, "more of it" * 100)
      _, _, compressed = CompressingApplication.new(lint: false) { [200, JSON.dup, body] }.call(name)
      assert_raises(Errno::EPIPE) { compressed.each { raise Errno::EPIPE } }
      compressed.close
      assert_equal 1, body.closed
      assert_equal TEXT, CompressingApplication.new { [200, JSON.dup, [TEXT]] }.get(name).text
    end
  end

  test "what a coding holds is let go at once when a body has ended, has raised, or is wanted no more" do
    %w[gzip br zstd].each do |name|
      [-> { TEXT }, -> { raise IOError, "the database is gone" }, -> { throw :enough }].each do |ending|
        closed = 0
        coding = Hikyaku::Codec::Coding[name]
        _, _, compressed = CompressingApplication.new(lint: false) { [200, JSON.dup, Body.new(TEXT, ending)] }.call(name)
        stream = coding.stream
        stream.define_singleton_method(:close) { super().tap { closed += 1 } }
        coding.stub(:stream, stream) { catch(:enough) { compressed.each { |_| } } rescue IOError } # standard:disable Style/RescueModifier
        assert_operator closed, :>=, 1, name
      end
    end
  end

  test "a body that nobody asks for is closed all the same" do
    body = Body.new(TEXT)
    _, _, compressed = CompressingApplication.new { [200, JSON.dup, body] }.call
    compressed.close
    assert_equal [0, 1], [body.asked, body.closed]
  end

  test "bodies without close, and those that an Array hides in, are closed as often as they can be" do
    closed = 0
    proxied = CompressingApplication.new { [200, JSON.dup, Rack::BodyProxy.new([TEXT]) { closed += 1 }] }
    answer = proxied.get
    assert_equal ["gzip", answer.bytes.bytesize.to_s, TEXT, 1], [answer["content-encoding"], answer["content-length"], answer.text, closed]
    small = CompressingApplication.new(lint: false) { [200, JSON.dup, Rack::BodyProxy.new(["small"]) { closed += 1 }] }
    assert_equal ["small", 2], [small.get.text, closed]
    array = [TEXT].tap { |body| body.define_singleton_method(:close) { closed += 1 } }
    assert_equal [TEXT, 3], [CompressingApplication.new(lint: false) { [200, JSON.dup, array] }.get.text, closed]
    lines = Enumerator.new { |out| 3.times { out << TEXT } }
    assert_equal TEXT * 3, CompressingApplication.new(lint: false) { [200, JSON.dup, lines] }.get.text
  end

  test "a body with each and call is one with each" do
    body = Body.new(TEXT)
    body.define_singleton_method(:call) { |_stream| raise "not this way" }
    assert_equal ["gzip", TEXT], CompressingApplication.new(lint: false) { [200, JSON.dup, body] }.get.then { |answer| [answer["content-encoding"], answer.text] }
  end

  test "files are compressed, small ones whole, large ones on the way, and ranges of them are left alone" do
    in_folder do |folder|
      {"small.json" => TEXT, "large.json" => TEXT * 400}.each do |name, text|
        File.write(File.join(folder, name), text)
        application = CompressingApplication.new(inside: []) { |env| Rack::Files.new(folder).call(env) }
        answer = application.get(path: "/#{name}")
        assert_equal [200, "gzip", name == "small.json"], [answer.status, answer["content-encoding"], answer.headers.key?("content-length")]
        assert_equal text.hash, answer.text.hash
        part = application.get(path: "/#{name}", range: "bytes=1-4")
        assert_equal [206, nil, text[1, 4], "Accept-Encoding"], [part.status, part["content-encoding"], part.bytes, part["vary"]]
        head = application.get(path: "/#{name}", method: "HEAD")
        assert_equal ["gzip", ""], [head["content-encoding"], head.bytes]
      end
    end
  end

  test "a large file is read in parts, and without a stop after each" do
    in_folder do |folder|
      path = File.join(folder, "large.txt")
      File.write(path, Array.new(200_000) { |index| "line #{index}\n" }.join)
      body = Body.new(-> { flunk "asked" })
      body.define_singleton_method(:to_path) { path }
      answer = CompressingApplication.new(lint: false) { [200, {"content-type" => "text/plain"}, body] }.get
      assert_equal [File.read(path).hash, 1], [answer.text.hash, body.closed]
      assert_operator answer.pieces.size, :>, 1
      refute_includes answer.bytes, "\x00\x00\xFF\xFF".b
      File.write(path, "0" * 2_000_000)
      assert_empty CompressingApplication.new(lint: false) { [200, {"content-type" => "text/plain"}, body] }.get.pieces.select(&:empty?)
      _, _, compressed = CompressingApplication.new(lint: false) { [200, {"content-type" => "text/plain"}, body] }.call
      assert_raises(Errno::EPIPE) { compressed.each { raise Errno::EPIPE } }
      assert_empty ObjectSpace.each_object(File).select { |file| !file.closed? && file.path == path }
    end
  end

  test "a path that leads to nothing is left to the body" do
    body = Body.new(TEXT)
    body.define_singleton_method(:to_path) { "/nowhere/at/all" }
    answer = CompressingApplication.new(lint: false) { [200, JSON.dup, body] }.get
    assert_equal [TEXT, 1, "gzip"], [answer.text, body.closed, answer["content-encoding"]]
    pathless = Body.new(TEXT).tap { |other| other.define_singleton_method(:to_path) {} }
    assert_equal TEXT, CompressingApplication.new(lint: false) { [200, JSON.dup, pathless] }.get.text
  end

  private

  def in_folder(&block) = Dir.mktmpdir("hikyaku-compression", &block)

  def decoder(name)
    case name
    when "gzip" then Zlib::Inflate.new(Zlib::MAX_WBITS + 16).method(:inflate)
    when "br" then Brotli::Decompressor.new.method(:process)
    else Zstd::StreamingDecompress.new.method(:decompress)
    end
  end

  # Whether a client that has got this, and then a regular end, would believe that it has everything.
  def complete?(name, bytes)
    case name
    when "gzip" then Zlib::Inflate.new(Zlib::MAX_WBITS + 16).tap { |inflate| inflate.inflate(bytes) }.finished?
    when "br" then Brotli::Decompressor.new.tap { |decompressor| decompressor.process(bytes) }.finished?
    else Hikyaku::Codec::Coding[:zstd].compress("x").byteslice(0, 4) != bytes.byteslice(0, 4) || last_block?(bytes)
    end
  end

  # Follows the blocks of the frame: a window descriptor, no dictionary, no size, no checksum (RFC 8878, section 3.1.1).
  def last_block?(bytes)
    assert_equal 0, bytes.getbyte(4)
    at = 6
    while at < bytes.bytesize
      head = bytes.byteslice(at, 3).unpack("C3").each_with_index.sum { |byte, index| byte << (8 * index) }
      return true if head.odd?
      at += 3 + (((head >> 1) & 3 == 1) ? 1 : head >> 3)
    end
    false
  end
end
