# frozen_string_literal: true

require "support/protocol_test"
require "timeout"

# A hub that is mounted in Puma, which reads requests by itself: RFC 9112, sections 3.2 and 6.
class Protocol::MountedTest < Protocol::Test
  LENGTH = "content-length: 1000000000000"
  METADATA = "/.well-known/oauth-protected-resource/.well-known/mercure"

  def start_mounted(**settings)
    other = ->(env) { [200, {"content-type" => "text/plain"}, ["other #{env["rack.input"].read.bytesize}"]] }
    start(wrap: ->(web) { ->(env) { web.serves?(env["PATH_INFO"]) ? web.call(env) : other.call(env) } }, **settings)
  end

  def raw(method, *fields, path: server.path, body: "")
    client.raw("#{method} #{path} HTTP/1.1\r\n#{fields.map { |field| "#{field}\r\n" }.join}connection: close\r\n\r\n#{body}")
  end

  test "a request has one field Host, of good form" do
    start_mounted
    [[], ["host: a", "host: b"], ["host: a", "host: a"], ["host: a b"], ["host: a/b"], ["host: a@b"], ["host: a, b"], ["host: [::1"], ["host: a:b"]].each do |fields|
      ["", "?match=a", "/subscriptions", "/nothing"].each do |rest|
        assert_equal 400, raw("GET", *fields, path: "#{server.path}#{rest}").status, fields.inspect
      end
      assert_equal 400, raw("POST", *fields, "content-type: application/x-www-form-urlencoded", "authorization: Bearer #{publisher}", "content-length: 7", body: "topic=a").status, fields.inspect
    end
    %w[a a:80 A.example [::1] [::1]:8080 127.0.0.1:1].each do |host|
      assert_equal 200, raw("POST", "host: #{host}", "content-type: application/x-www-form-urlencoded", "authorization: Bearer #{publisher}", "content-length: 7", body: "topic=a").status, host
    end
    assert_equal "other 0", raw("GET", path: "/other").body, "what is not the hub's is not its affair"
  end

  test "a body that is far too large is refused before it comes" do
    start_mounted
    [publisher, nil].each do |token|
      credentials = token ? ["authorization: Bearer #{token}"] : []
      %w[POST QUERY GET DELETE].each do |method|
        ["", "/streams/x", "/subscribers/x", "/subscriptions", "?match=a"].each do |rest|
          assert_problem 413, raw(method, "host: a", LENGTH, *credentials, path: "#{server.path}#{rest}"), "#{method} #{rest}"
        end
      end
      assert_problem 413, raw("POST", "host: a", LENGTH, "expect: 100-continue", *credentials), "and nobody is told to go on"
      assert_problem 413, raw("POST", "host: a", LENGTH, path: "http://a#{server.path}")
      assert_problem 413, raw("GET", "host: a", LENGTH, path: METADATA)
    end
  end

  test "what is sent behind such a head is no request" do
    start_mounted
    bytes = client.raw("POST #{server.path} HTTP/1.1\r\nhost: a\r\n#{LENGTH}\r\n\r\nGET /other HTTP/1.1\r\nhost: a\r\n\r\n")
    assert_problem 413, bytes
    refute_includes bytes.body, "other"
  end

  test "of chunks no more is read than the hub takes" do
    start_mounted(max_request_bytes: 2_000)
    head = "POST #{server.path} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ncontent-type: application/x-www-form-urlencoded\r\nauthorization: Bearer #{publisher}\r\n\r\n"
    chunk = "10000\r\n#{"x" * 65_536}\r\n"
    socket = TCPSocket.new("127.0.0.1", server.port)
    socket.write(head)
    sent = 0
    begin
      sent += socket.write(chunk) until sent > 200_000_000 || socket.wait_readable(0)
      assert_match(%r{\AHTTP/1.1 413 }, socket.readpartial(4096))
    rescue Errno::EPIPE, Errno::ECONNRESET
      nil # it went on sending, and did not see the answer
    end
    assert_operator sent, :<, 50_000_000, "the end of it was never looked for"
  ensure
    socket&.close
  end

  test "one subscriber too many holds no connection, even one who would leave it open" do
    start_mounted(max_connections: 1)
    follow(topic)
    socket = TCPSocket.new("127.0.0.1", server.port)
    socket.write("GET #{server.path}?match=a HTTP/1.1\r\nhost: a\r\n\r\n")
    answer = Timeout.timeout(60) { socket.read }
    assert_match(%r{\AHTTP/1.1 429 }, answer)
    assert_equal 1, answer.scan(/^connection: close\r$/i).size
  ensure
    socket&.close
  end

  test "other paths of the application have their own limits, on the same connection, too" do
    start_mounted(max_request_bytes: 2_000)
    body = "x" * 3_000_000
    other = "POST /other HTTP/1.1\r\nhost: a\r\ncontent-length: #{body.bytesize}\r\n"
    hub = "OPTIONS #{server.path} HTTP/1.1\r\nhost: a\r\n\r\n"
    assert_equal 204, client.raw(hub + "#{other}connection: close\r\n\r\n" + body).status
    assert_equal "other 3000000", raw("POST", "host: a", "content-length: #{body.bytesize}", path: "/other", body: body).body
    assert_problem 413, raw("POST", "host: a", "content-length: 3000", "content-type: application/x-www-form-urlencoded", "authorization: Bearer #{publisher}", body: "x" * 3_000)
  end
end
