# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client"
require "stringio"
require "support/misbehaving"

# What is asked where a redirect leads, byte for byte: RFC 9110, section 15.4.
class HTTPClientRedirectionTest < Minitest::Test
  HTTP = Hikyaku::HTTP
  SECRET = "password=secret"
  # What says something of the body.
  OF_THE_BODY = {"Content-Type" => "text/plain", "Content-Encoding" => "identity", "Content-Language" => "ja", "Content-Location" => "/x", "Content-Disposition" => "inline",
                 "Content-MD5" => "x", "Content-Digest" => "x", "Repr-Digest" => "x", "Digest" => "x", "Last-Modified" => "Thu, 01 Jan 1970 00:00:00 GMT"}.freeze
  BODIES = {"text" => -> { SECRET }, "something that is read" => -> { StringIO.new(SECRET) }, "nothing" => -> { "" }}.freeze
  private_constant :HTTP, :SECRET, :OF_THE_BODY, :BODIES

  # Answers one request a connection, and keeps all that comes there until the client closes it.
  class Ear
    WHOLE = /\A.*?\r\n\r\n/mn
    private_constant :WHOLE

    # @yieldparam bytes [String] one request
    # @yieldreturn [String] what is answered
    def initialize(&answer)
      @answer = answer
      @heard = []
      @all_heard = true
      @listener = TCPServer.new("127.0.0.1", 0)
      @port = @listener.addr[1]
      @thread = Thread.new { listen }
    end

    # @return [Array<String>] all that came on each connection
    def heard
      Thread.pass until @all_heard
      @heard
    end

    def url(path) = "http://127.0.0.1:#{@port}#{path}"

    def close
      @thread.kill.join
      @listener.close
    end

    private

    def listen
      Thread.current.report_on_exception = false
      loop do
        socket = @listener.accept
        bytes = +"".b
        bytes << socket.readpartial(65_536) until whole?(bytes)
        @all_heard = false
        socket.write(@answer.call(bytes))
        @heard << (bytes << socket.read)
        @all_heard = true
        socket.close
      end
    end

    def whole?(bytes)
      head = bytes[WHOLE] or return false
      return bytes.end_with?("\r\n0\r\n\r\n") if head.match?(/^transfer-encoding:/i)
      bytes.bytesize >= head.bytesize + head[/^content-length: (\d+)/i, 1].to_i
    end
  end
  private_constant :Ear

  OK = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
  private_constant :OK

  BODIES.each do |what, body|
    [["POST", 301], ["POST", 302], ["POST", 303], ["PUT", 303], ["PATCH", 303], ["DELETE", 303]].each do |method, status|
      test "a #{method} with #{what} becomes a GET by #{status}, and nothing of the body goes along, here or elsewhere" do
        hear(status) do |one, two, client|
          %w[/same /other].each do |path|
            assert_predicate client.request(method, one.url(path), body: body.call, headers: {**OF_THE_BODY, "X-Kept" => "yes"}), :ok?
          end
          assert_equal ["#{method} /same", "GET /there", "#{method} /other"], one.heard.map { |bytes| bytes[/\A\S+ \S+/] }
          assert_equal 1, two.heard.size
          [one.heard[1], two.heard.first].each { |bytes| assert_bare(bytes) }
        end
      end
    end
  end

  [["POST", 307], ["POST", 308], ["PUT", 301], ["PUT", 302], ["PATCH", 308]].each do |method, status|
    test "a #{method} stays one by #{status}, with its body and what is said of it" do
      hear(status) do |one, two, client|
        assert_predicate client.request(method, one.url("/other"), body: SECRET, headers: OF_THE_BODY), :ok?
        head, body = two.heard.fetch(0).split("\r\n\r\n", 2)
        assert_equal ["#{method} /there HTTP/1.1", SECRET, 1], [head.lines.first.chomp, body, two.heard.size]
        {**OF_THE_BODY, "content-length" => SECRET.bytesize}.each { |name, value| assert_match(/^#{name}: #{value}\r?$/i, head) }
        two.heard.clear
        assert_raises(HTTP::BadRedirect) { client.request(method, one.url("/other"), body: StringIO.new(SECRET)) }
        assert_empty two.heard
      end
    end
  end

  test "a redirect is followed whatever its body is, or is said to be encoded with: nobody reads it" do
    bomb = Zlib.gzip("\0" * 3_000_000)
    {"that is broken" => ["gzip", "\x1F\x8B\b\0 and no more".b], "that ends too early" => ["gzip", bomb.byteslice(0, 100)], "that is too large" => ["gzip", bomb], "that is too large as it is" => ["identity", "x" * 5_000], "of a coding that it has not" => ["deflate", "text"]}.each do |what, (coding, body)|
      way = Misbehaving::AsTold.new do |request, _|
        "HTTP/1.1 301 x\r\nCache-Control: max-age=60\r\nLocation: /there\r\nContent-Encoding: #{coding}\r\nContent-Length: #{body.bytesize}\r\n\r\n".b + body if request.path == "/moved"
      end
      Misbehaving.run(way) do |server|
        [false, true].each do |cache|
          client = HTTP::Client.new(memory: nil, proxy: nil, cache: cache, max_body_bytes: 2_000, timeouts: {total: 30})
          2.times { assert_equal Misbehaving.body_of("/there"), client.get(server.url("/moved")).body, what }
          assert_equal Misbehaving.body_of("/there"), client.open(server.url("/moved"), &:read), what
        ensure
          client&.close
        end
      end
    end
  end

  private

  def hear(status)
    two = Ear.new { OK }
    one = Ear.new do |bytes|
      to = {"/same" => "/there", "/other" => two.url("/there")}[bytes[%r{\A\S+ (\S+)}, 1]]
      to ? "HTTP/1.1 #{status} x\r\nLocation: #{to}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" : OK
    end
    yield one, two, HTTP::Client.new(memory: nil, cache: false, proxy: nil, timeouts: {total: 30})
  ensure
    [one, two].compact.each(&:close)
  end

  def assert_bare(bytes)
    head, rest = bytes.split("\r\n\r\n", 2)
    assert_equal "", rest
    assert_match(%r{\AGET /there HTTP/1\.1\r\n}, head)
    refute_includes bytes, SECRET
    refute_match(/^(?:content-|transfer-encoding|repr-digest|digest|last-modified|expect)/i, head)
    assert_match(/^x-kept: yes\r?$/, head)
  end
end
