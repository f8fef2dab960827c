# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client"
require "support/misbehaving"

# How often something is sent, at most. RFC 9110, section 9.2.2: a repetition that fails is not repeated.
class HTTPClientRetryPolicyTest < Minitest::Test
  ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
  private_constant :ANSWER

  test "what fails twice has failed" do
    assert_equal [2, nil], sent("GET")
    assert_equal [2, nil], sent("DELETE")
    assert_equal [2, 200], sent("GET", failures: 1)
  end

  test "what cannot be repeated is sent once" do
    assert_equal [1, nil], sent("POST", failures: 1)
    assert_equal [1, nil], sent("PATCH", failures: 1)
  end

  # The server may have heard it there as well, and done it.
  test "on a connection that was idle it is no different" do
    %w[GET PUT DELETE].each do |method|
      assert_equal [2, nil], sent(method, kept: true)
      assert_equal [2, 200], sent(method, kept: true, failures: 1)
    end
  end

  test "what was late behind others, and is broken off elsewhere, is not sent a third time" do
    heard = 0
    way = Misbehaving::AsTold.new do |request, connection|
      next unless request.path == "/1"
      heard += 1
      (heard == 1) ? connection.discard : connection.close
      ""
    end
    Misbehaving.run(way) do |server|
      client = Hikyaku::HTTP::Client.new(memory: nil, cache: false, proxy: nil, max_connections: 1, timeouts: {first_byte: 1})
      client.get(server.url("/first"))
      outcomes = client.get(Array.new(3) { |i| server.url("/#{i}") })
      assert_equal [false, true, false], outcomes.map { |outcome| !outcome.error.nil? }
      assert_equal 2, heard
    ensure
      client&.close
    end
  end

  private

  # @return [Array] how often it came, and the status or nil
  def sent(method, failures: 1_000, kept: false)
    heard = 0
    TCPServer.open("127.0.0.1", 0) do |server|
      serving = Thread.new { loop { converse(server.accept) { |path| path != "/first" && (heard += 1) <= failures } } }
      client = Hikyaku::HTTP::Client.new(memory: nil, cache: false, proxy: nil)
      url = "http://127.0.0.1:#{server.local_address.ip_port}"
      client.get("#{url}/first") if kept
      status = status_of { client.request(method, "#{url}/x") }
      client.close
      return [heard, status]
    ensure
      serving&.kill
    end
  end

  def status_of
    yield.status
  rescue Hikyaku::HTTP::ConnectionLost
    nil
  end

  def converse(socket)
    while (line = socket.gets)
      nil until socket.gets == "\r\n"
      break if yield line.split[1]
      socket.write(ANSWER)
    end
  ensure
    socket.close
  end
end
