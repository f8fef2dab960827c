# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client"

# How often something is sent, at most. RFC 9110, section 9.2.2: a repetition that fails is not repeated.
class HTTPClientRepetitionTest < Minitest::Test
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

  # The server may have closed it before it heard of what was asked, so that was no attempt.
  test "on a connection that was idle one more is sent" do
    assert_equal [3, nil], sent("GET", kept: true)
    assert_equal [3, 200], sent("GET", kept: true, failures: 2)
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
