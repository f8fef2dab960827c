# frozen_string_literal: true

require "support/integration"
require "hikyaku/client/publisher"

# How the hub's own process ends when it is told to.
class StopTest < Integration::Test
  include AccessTokens

  BOOK = Integration::BOOK
  SECRET = "!ChangeThisMercureHubJWTSecretKey!"

  %w[TERM INT].each do |signal|
    test "on #{signal} what was acknowledged has reached its readers, these are told when to come back, and the code is 0" do
      hub = start_hub
      streams = Array.new(30) { follow(hub, BOOK) }
      publishers = Array.new(3) { |number| publish_until_refused(hub, number) }
      eventually("some publishes") { publishers.all? { |thread| thread[:acknowledged].to_a.size > 5 } }
      status = hub.stop(signal)
      acknowledged = publishers.flat_map { |thread| thread.join(60)&.value || flunk("a publisher hangs") }
      assert_equal [true, 0], [status.exited?, status.exitstatus], hub.log
      refute_empty acknowledged
      streams.each do |stream|
        received = stream.rest.map(&:data)
        assert_empty acknowledged - received, "acknowledged, and lost"
        assert_equal received.uniq, received
        assert_operator stream.retry_after, :>=, 500
      end
      assert_operator streams.map(&:retry_after).uniq.size, :>, 10, "all come back at once"
      assert_raises(Errno::ECONNREFUSED) { HttpClient.new(hub.port).connect }
    end
  end

  test "what was acknowledged reaches also a reader that is slow to take it, and that is told when to come back" do
    hub = start_hub
    socket = ending(Socket.new(:INET, :STREAM))
    socket.setsockopt(:SOCKET, :RCVBUF, 16_384)
    socket.connect(Socket.sockaddr_in(hub.port, "127.0.0.1"))
    socket.write("GET /.well-known/mercure?match=#{BOOK} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    # Its head comes when it is subscribed.
    assert socket.wait_readable(60)
    50.times { |number| hub.publish({topic: BOOK, data: "#{number} ".ljust(10_000, "x")}) }
    ended = Thread.new { hub.stop("TERM") }
    sleep 0.5
    bytes = socket.read
    assert_equal (0...50).map(&:to_s), bytes.scan(/^data: (\d+) x+$/).flatten
    assert_match(/retry: \d+\n\n(?:\r\n0\r\n\r\n)?\z/, bytes)
    assert_equal 0, ended.value.exitstatus
  end

  test "a publish whose body is still on its way when the hub stops is answered, and no new connection is taken" do
    hub = start_hub
    stream = follow(hub, BOOK)
    token = hub.token(publish: ["*"])
    body = "topic=#{BOOK}&data=in+flight"
    connection = ending(HttpClient.new(hub.port).connect)
    write_behind_another(connection, "POST /.well-known/mercure HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer #{token}\r\nContent-Type: application/x-www-form-urlencoded\r\n" \
      "Content-Length: #{body.bytesize}\r\n\r\n#{body[0, 10]}")
    Process.kill("TERM", hub.pid)
    eventually("the log's word of the stop") { hub.log.include?("stopping on TERM") }
    eventually("the end of new connections") { refuses_connections?(hub) }
    connection.write(body[10..])
    response = connection.head(HttpClient.now + HttpClient::PATIENCE)
    assert_equal 200, response.status
    assert_equal ["in flight"], stream.rest.map(&:data)
    assert_equal 0, hub.wait.exitstatus
  end

  test "a second signal ends the process at once, whoever still sends" do
    hub = start_hub
    connection = ending(HttpClient.new(hub.port).connect)
    write_behind_another(connection, "POST /.well-known/mercure HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\ntopic")
    Process.kill("TERM", hub.pid)
    eventually("the log's word of the stop") { hub.log.include?("stopping on TERM") }
    Process.kill("TERM", hub.pid)
    assert_equal 1, hub.wait.exitstatus
  end

  private

  # The hub has read it when the other is answered.
  def write_behind_another(connection, beginning)
    connection.write("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n#{beginning}")
    response = connection.head(HttpClient.now + HttpClient::PATIENCE)
    assert_equal 200, response.status
    connection.body(response, "GET", HttpClient.now + HttpClient::PATIENCE)
  end

  def refuses_connections?(hub)
    HttpClient.new(hub.port).connect.close
    false
  rescue Errno::ECONNREFUSED, Errno::ECONNRESET
    true
  end

  # @return [Thread] whose value is what was acknowledged
  def publish_until_refused(hub, number)
    publisher = Hikyaku::Publisher.new(hub.url, key: SECRET, retries: 0)
    Thread.new do
      done = Thread.current[:acknowledged] = []
      (0..).each do |index|
        publisher.publish(BOOK, "#{number}-#{index}")
        done << "#{number}-#{index}"
        sleep 0.001
      end
    rescue Hikyaku::Publisher::Failure
      done
    ensure
      publisher.close
    end
  end
end
