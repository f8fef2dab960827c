# frozen_string_literal: true

require "test_helper"
require "brotli"
require "digest"
require "zlib"
require "zstd-ruby"
require "hikyaku/http/client"
require "support/misbehaving"

# Bodies piece by piece: no byte of another place or time in any, and no more of them than are taken.
class HTTPClientStreamTest < Minitest::Test
  Client = Hikyaku::HTTP::Client
  LARGE = Array.new(30_000) { |i| format("%010d", i) }.join.b.freeze
  private_constant :Client, :LARGE

  # Takes orders.
  class Flow
    attr_reader :orders

    def initialize = @orders = []

    def pause = @orders << :pause

    def resume = @orders << :resume
  end

  # Nothing moves in it.
  class Still
    def now = 0.0

    def wait(_) = nil

    def synchronize = yield
  end
  private_constant :Flow, :Still

  test "what can be done with any enumerable can be done with it" do
    Misbehaving.run(:well_behaved) do |server|
      body = Misbehaving.body_of("/x")
      assert_equal body.bytesize, Client.new(memory: nil, proxy: nil).open(server.url("/x")).sum(&:bytesize)
      assert_equal [body], [Client.new(memory: nil, proxy: nil).open(server.url("/x")).to_a.join]
    end
  end

  test "a body that comes in many pieces is right, and the pieces stay as they were, whether it is kept or not" do
    [true, false].each do |cache|
      gate = Queue.new
      way = Misbehaving::AsTold.new do |_, connection|
        connection.write("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 40\r\n\r\n")
        4.times { |i| gate.pop && connection.write(i.to_s * 10) }
        :nothing
      end
      serve(way, cache: cache) do |server, client|
        gate << true
        pieces = client.open(server.url("/a")) { |stream| stream.map { |piece| [piece, piece.dup].tap { gate << true } } }
        assert_equal Array.new(4) { |i| i.to_s * 10 }, pieces.map(&:last)
        assert_equal pieces.map(&:last), pieces.map(&:first)
        next unless cache
        assert_equal [pieces.map(&:last).join, true], client.get(server.url("/a")).then { |response| [response.body, response.cached?] }
        pieces.each { |piece, _| piece << "mine" }
        assert_equal 40, client.get(server.url("/a")).body.bytesize
      ensure
        5.times { gate << true }
      end
    end
  end

  test "a large body is byte for byte right, be it read at once or in pieces" do
    way = Misbehaving::AsTold.new { |_, _| "HTTP/1.1 200 OK\r\nContent-Length: #{LARGE.bytesize}\r\n\r\n#{LARGE}" }
    [true, false].each do |cache|
      serve(way, cache: cache) do |server, client|
        10.times do |i|
          assert_same_bytes LARGE, client.open(server.url("/read-#{i}"), &:read)
          assert_same_bytes LARGE, client.open(server.url("/each-#{i}")) { |stream| stream.each.inject("".b) { |all, piece| all << piece } }
        end
      end
    end
  end

  test "when much waits to be taken no more is read, until little does" do
    flow = Flow.new
    stream = Client::Stream.new("http://a.example/", nil, Still.new)
    stream.head_came(Object.new, flow)
    4.times { stream.push("x" * 65_536) }
    assert_empty flow.orders
    stream.push("y" * 65_536)
    assert_equal [:pause], flow.orders
    4.times { stream.send(:take) }
    assert_equal [:pause], flow.orders
    stream.send(:take)
    assert_equal %i[pause resume], flow.orders
  end

  test "who takes slowly has the connection wait, and gets everything at last" do
    body = LARGE * 20
    way = Misbehaving::AsTold.new { |request, _| "HTTP/1.1 200 OK\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}" if request.path == "/large" }
    serve(way, cache: false) do |server, client|
      client.open(server.url("/large"), timeout: 20) do |stream|
        assert_equal 200, stream.status
        turns = 0
        until stream.instance_variable_get(:@bytes) > 262_144
          flunk "nothing comes" if (turns += 1) > 10_000
          client.get(server.url("/other-#{turns}"))
        end
        connections = client.instance_variable_get(:@manager).servers.to_a.first.connections
        assert_equal 1, connections.count(&:paused?)
        waits = stream.instance_variable_get(:@bytes)
        3.times { |i| client.get(server.url("/more-#{i}")) }
        assert_equal waits, stream.instance_variable_get(:@bytes)
        assert_same_bytes body, stream.read
      end
    end
  end

  ZEROS = ("\0" * 30_000_000).b.freeze
  # Little bodies that become very much.
  BOMBS = {"gzip" => Zlib.gzip(ZEROS), "deflate" => Zlib.deflate(ZEROS), "br" => Brotli.deflate(ZEROS), "zstd" => Zstd.compress(ZEROS), "gzip, gzip" => Zlib.gzip(Zlib.gzip(ZEROS))}.freeze
  private_constant :ZEROS, :BOMBS

  test "what was compressed is decoded as it is taken, in pieces of no more than a megabyte, and others go on meanwhile" do
    way = Misbehaving::AsTold.new do |request, _|
      coding = request.path.delete_prefix("/").tr("+", " ")
      "HTTP/1.1 200 OK\r\nContent-Encoding: #{coding}\r\nContent-Length: #{BOMBS[coding].bytesize}\r\n\r\n#{BOMBS[coding]}" if BOMBS.key?(coding)
    end
    serve(way, cache: true) do |server, client|
      BOMBS.each_key do |coding|
        client.open(server.url("/#{coding.tr(" ", "+")}"), timeout: 180) do |stream|
          sizes = []
          stream.each do |piece|
            sizes << piece.bytesize
            assert_operator stream.instance_variable_get(:@bytes), :<=, 2_000_000, coding
            assert_predicate client.get(server.url("/other")), :ok? if sizes.size == 1
          end
          assert_equal [ZEROS.bytesize, true, true], [sizes.sum, stream.done?, stream.ok?], coding
          assert_operator sizes.max, :<=, 1_048_576, coding
        end
      end
    end
  end

  test "what is wrong at the end of what was compressed is told to who takes it, and nobody else" do
    bytes = {"/short" => BOMBS["gzip"].chop, "/wrong" => BOMBS["gzip"].dup.tap { |all| all.setbyte(-6, 7) }}
    way = Misbehaving::AsTold.new do |request, _|
      body = bytes[request.path]
      "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}" if body
    end
    serve(way, cache: false) do |server, client|
      bytes.each_key do |path|
        stream = client.open(server.url(path), timeout: 180)
        taken = 0
        assert_raises(Hikyaku::HTTP::BadResponse, path) { stream.each { |piece| taken += piece.bytesize } }
        assert_operator taken, :>, 20_000_000
        stream = client.open(server.url(path), timeout: 180)
        stream.first
        stream.close
        assert_raises(Hikyaku::HTTP::Canceled) { stream.read }
        assert_predicate client.get(server.url("/other")), :ok?
      end
    end
  end

  test "what comes from the cache comes in pieces, too" do
    way = Misbehaving::AsTold.new { |_, _| "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: #{LARGE.bytesize}\r\n\r\n#{LARGE}" }
    serve(way, cache: true) do |server, client|
      client.get(server.url("/a"))
      pieces = client.open(server.url("/a")) { |stream| stream.cached? && stream.to_a }
      assert_same_bytes LARGE, pieces.join
      assert_operator pieces.map(&:bytesize).max, :<=, 65_536
    end
  end

  test "a body without a length is refused when it is too large, and a stream of it is not" do
    chunks = Array.new(20) { "3e8\r\n#{"x" * 1_000}\r\n" }.join
    {"Transfer-Encoding: chunked\r\n" => "#{chunks}0\r\n\r\n", "Connection: close\r\n" => "x" * 20_000}.each do |field, body|
      way = Misbehaving::AsTold.new do |_, connection|
        connection.write("HTTP/1.1 200 OK\r\n#{field}\r\n#{body}")
        connection.close if field.include?("close")
        :nothing
      end
      serve(way, cache: false, max_body_bytes: 19_999) do |server, client|
        assert_match(/more than 19999 bytes/, assert_raises(Hikyaku::HTTP::ResponseTooLarge) { client.get(server.url("/a")) }.message)
        assert_equal 20_000, client.open(server.url("/a"), &:read).bytesize
      end
      serve(way, cache: false, max_body_bytes: 20_000) { |server, client| assert_equal 20_000, client.get(server.url("/a")).body.bytesize }
    end
  end

  private

  def assert_same_bytes(expected, actual)
    assert_equal [expected.bytesize, Digest::SHA256.hexdigest(expected)], [actual.bytesize, Digest::SHA256.hexdigest(actual)]
  end

  def serve(way, **options)
    client = Client.new(memory: nil, proxy: nil, **options)
    Misbehaving.run(way) { |server| yield server, client }
  ensure
    client&.close
  end
end
