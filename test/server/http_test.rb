# frozen_string_literal: true

require "test_helper"
require "logger"
require "hikyaku/server/http"
require "hikyaku/server/listener"
require "support/http_client"

class ServerHttpTest < Minitest::Test
  # Takes its time from one line to the next.
  class SlowFields < Hash
    def each
      super { |name, value| yield(name, value).tap { sleep 0.1 } }
    end
  end

  # The thread that has given a connection away is held up before it goes on.
  module HeldUp
    def add(client) = super.tap { sleep 0.25 }
  end

  test "an answer keeps its beginning, whatever the thread does that had the connection before" do
    fields = SlowFields.new.merge!("a" => "1", "b" => "2", "c" => "3", "d" => "4")
    with_server(->(_env) { [200, fields, ["body"]] }) do |port|
      socket = TCPSocket.new("127.0.0.1", port)
      # There is nothing to read yet: the thread that accepts it gives it to the reactor.
      sleep 0.05
      socket.write("GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
      answer = socket.read
      assert_match(/\AHTTP\/1\.1 200 OK\r\n/, answer)
      fields.each_key { |name| assert_includes answer, "\r\n#{name}: " }
    ensure
      socket&.close
    end
  end

  private

  def with_server(application)
    socket = TCPServer.new("127.0.0.1", 0)
    listener = Struct.new(:sockets).new([socket])
    server = Hikyaku::Server::Http.new(application, logger: Logger.new(IO::NULL), listener: listener, threads: 3, max_request_bytes: 1024)
    server.run
    server.instance_variable_get(:@reactor).singleton_class.prepend(HeldUp)
    yield socket.local_address.ip_port
  ensure
    server&.stop(true)
  end
end
