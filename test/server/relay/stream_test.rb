# frozen_string_literal: true

require "test_helper"
require "hikyaku/server/relay"
require "socket"
require "tmpdir"

class RelayStreamTest < Minitest::Test
  extend SentenceTests

  # A hub that answers whatever it is asked with this.
  def answered_with(head, *parts)
    Dir.mktmpdir do |folder|
      server = UNIXServer.new("#{folder}/hub.sock")
      hub = Thread.new do
        connection = server.accept
        connection.readpartial(4096)
        connection.write("HTTP/1.1 200 OK\r\n#{head}\r\nconnection: close\r\n\r\n")
        parts.each { |part| connection.write(part) }
        connection.close
      end
      yield Hikyaku::Server::Relay::Stream.new("#{folder}/hub.sock", "GET / HTTP/1.1\r\n\r\n").response({"SERVER_PROTOCOL" => "HTTP/1.1"})
    ensure
      hub&.join
      server&.close
    end
  end

  # What a server has to write to.
  Sink = Struct.new(:written) do
    def write(bytes) = written << bytes

    def close = nil
  end

  test "a stream is given on as it comes, whatever its form and coding" do
    ["text/event-stream", "text/event-stream; charset=utf-8", "application/vnd.msgpack"].each do |type|
      answered_with("content-type: #{type}\r\ncontent-encoding: gzip\r\nvary: Accept, Accept-Encoding", "\x1F\x8B\0\xC0", "\xC3") do |status, headers, body|
        assert_equal [200, type, "gzip", "Accept, Accept-Encoding"], [status, *headers.values_at("content-type", "content-encoding", "vary")]
        assert_respond_to body, :call
        sink = Sink.new(+"".b)
        body.call(sink)
        assert_equal "\x1F\x8B\0\xC0\xC3".b, sink.written
      end
    end
  end

  test "what is no stream is an answer like any other" do
    ["application/json", "application/vnd.msgpack2", "text/event-streams"].each do |type|
      answered_with("content-type: #{type}", "{}") { |_, _, body| assert_equal ["{}"], body }
    end
  end
end
