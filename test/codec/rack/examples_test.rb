# frozen_string_literal: true

require "test_helper"
require "json"
require "msgpack"
require "net/http"
require "tempfile"
require "zlib"
require "support/awaited_process"
require "support/free_port"

# examples/codec_sinatra and examples/codec_roda, started as their readers start them: the same to whoever asks.
class CodecRackExamplesTest < Minitest::Test
  ROOT = File.expand_path("../../..", __dir__)
  PACKED = "application/vnd.msgpack"
  PATIENCE = 60

  # One of them, on a free port of the loopback.
  class Server
    include AwaitedProcess

    def initialize(name)
      @port = FreePort.pick
      @name = name
      @log = Tempfile.new("hikyaku-codec-example")
      @pid = Process.spawn({"WEB_CONCURRENCY" => nil, "PORT" => nil}, "bundle", "exec", "puma", "--bind", "tcp://127.0.0.1:#{@port}", File.join(ROOT, "examples", name, "config.ru"), out: @log, err: @log)
      deadline = now + PATIENCE
      until answers?
        raise "#{name} did not start: #{File.read(@log.path)}" if now > deadline || Process.waitpid(@pid, Process::WNOHANG)
        sleep 0.05
      end
    end

    # @return [Net::HTTPResponse] as it was sent
    def get(path, method: Net::HTTP::Get, **fields)
      request = method.new(path, fields.to_h { |name, value| [name.to_s.tr("_", "-"), value] })
      request["accept-encoding"] ||= "identity"
      Net::HTTP.start("127.0.0.1", @port) { |http| http.request(request) }
    end

    def stop
      Process.kill(:TERM, @pid)
      await_end(@name, PATIENCE)
    end

    private

    def answers?
      get("/stations").is_a?(Net::HTTPOK)
    rescue SystemCallError, IOError
      false
    end
  end

  %w[codec_sinatra codec_roda].each do |name|
    test "#{name} answers as the client asks" do
      @server = Server.new(name)
      json, packed = @server.get("/stations"), @server.get("/stations", accept: "#{PACKED}, */*;q=0.1")
      assert_equal [["application/json", PACKED], %w[Nihonbashi Shinagawa]], [[json, packed].map { |answer| answer["content-type"] }, JSON.parse(json.body).first(2).map { |station| station["name"] }]
      assert_equal JSON.parse(json.body).map { |station| station["name"] }, MessagePack.unpack(packed.body, allow_unknown_ext: true).map { |station| station["name"] }
      assert_match(/Accept/, json["vary"])
      assert_equal packed.body, @server.get("/stations.mpac").body
      assert_known_again
      assert_streamed
      assert_equal [406, "application/problem+json"], @server.get("/stations", accept: "text/html").then { |answer| [answer.code.to_i, answer["content-type"]] }
      assert_equal "404", @server.get("/stations/900").code
      assert_equal [packed["etag"], nil], @server.get("/stations", accept: PACKED, method: Net::HTTP::Head).then { |answer| [answer["etag"], answer.body] }
    ensure
      @server&.stop
    end
  end

  private

  def assert_known_again
    ["application/json", PACKED].each do |accept|
      %w[/stations /stations/3].each do |path|
        answer = @server.get(path, accept: accept)
        assert_equal "304", @server.get(path, accept: accept, if_none_match: answer["etag"]).code
      end
    end
  end

  def assert_streamed
    ["application/json", PACKED].each do |accept|
      answer = @server.get("/steps?count=5000", accept: accept, accept_encoding: "gzip")
      assert_equal "gzip", answer["content-encoding"]
      text = Zlib.gunzip(answer.body)
      value = (accept == PACKED) ? MessagePack.unpack(text) : JSON.parse(text)
      assert_equal [5_000, 4_999], [value.size, value.last["step"]]
    end
  end
end
