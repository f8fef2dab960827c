# frozen_string_literal: true

require "support/integration"

# curl against the hub's own process: what a shell script does.
class CurlTest < Integration::Test
  include AccessTokens

  BOOK = Integration::BOOK

  def curl = @curl ||= skip_unless_available("curl").first

  # @return [Array(Integer, String)] status and body
  def ask(*arguments)
    out, status = ClientProcess.run(curl, "-sS", "--max-time", "10", "-w", "\n%{http_code}", *arguments)
    assert status.success?, "curl ended with #{status.exitstatus}: #{out}"
    body, _, code = out.rpartition("\n")
    [code.to_i, body]
  end

  # @return [ClientProcess] a subscription that is open
  def listen(*arguments)
    client = run_client(curl, "-sSN", "-D", "/dev/stderr", "--max-time", "20", *arguments)
    client.until(/^:/)
    client
  end

  def publish_with_curl(hub, *fields, token: hub.token(publish: ["*"]))
    ask(hub.url, "-H", "Authorization: Bearer #{token}", *fields.flat_map { |field| ["--data-urlencode", field] })
  end

  test "publishing answers 200 with the event id, and the update is in the stream at once" do
    hub = self.class.hub
    stream = listen(subscription(hub, "#{BOOK}/curl"))
    status, id = publish_with_curl(hub, "topic=#{BOOK}/curl", "data={\"title\": \"Dune\"}", "type=book")
    assert_equal 200, status
    stream.until(/^data: \{"title": "Dune"\}\n\n/)
    assert_includes stream.output, "id: #{id}\n"
    assert_includes stream.output, "event: book\n"
    assert_match(%r{^content-type: text/event-stream\r$}i, stream.errors)
  end

  test "without a token publishing is refused with a challenge" do
    status, body = ask(self.class.hub.url, "-i", "-d", "topic=#{BOOK}")
    assert_equal 401, status
    assert_match(/^www-authenticate: Bearer resource_metadata="/i, body)
    assert_match(%r{^content-type: application/problem\+json\r$}i, body)
  end

  test "HEAD answers as GET would, without a stream" do
    hub = self.class.hub
    status, head = ask("-I", subscription(hub, BOOK, last_event_id: "earliest"))
    assert_equal 200, status
    assert_match(%r{^content-type: text/event-stream\r$}i, head)
    assert_match(/^mercure-last-event-id: earliest\r$/i, head)
    assert_equal 400, ask("-I", hub.url).first
  end

  test "QUERY takes the matchers in the body, more than a URL could hold" do
    hub = self.class.hub
    matchers = Array.new(90) { |number| "match=#{BOOK}/#{"x" * 200}/#{number}" }
    stream = listen("-X", "QUERY", hub.url, *matchers.flat_map { |matcher| ["-d", matcher] }, "-d", "match_urlpattern=https://example.com/query/:id")
    publish_with_curl(hub, "topic=https://example.com/query/7", "data=by pattern")
    publish_with_curl(hub, "topic=#{matchers.last.delete_prefix("match=")}", "data=by name")
    stream.until(/^data: by pattern\n\n.*^data: by name\n\n/m)
  end

  test "a client of HTTP/1.0 gets the stream as well, not chunked" do
    hub = self.class.hub
    stream = listen("-0", subscription(hub, "#{BOOK}/old"))
    publish_with_curl(hub, "topic=#{BOOK}/old", "data=for the old")
    stream.until(/^data: for the old\n\n/)
    refute_match(/^transfer-encoding/i, stream.errors)
    refute_match(/^\h+\r$/, stream.output)
  end

  test "a client that asks to be told to go on with its body is told" do
    hub = self.class.hub
    status, = publish_with_curl(hub, "topic=#{BOOK}/large", "data=#{"x" * 100_000}")
    assert_equal 200, status
    token = hub.token(publish: ["*"])
    status, = ask(hub.url, "-H", "Authorization: Bearer #{token}", "-H", "Expect: 100-continue", "-d", "topic=#{BOOK}/large")
    assert_equal 200, status
    status, = ask(hub.url, "-H", "Authorization: Bearer #{token}", "-H", "Transfer-Encoding: chunked", "-d", "topic=#{BOOK}/large")
    assert_equal 200, status
  end

  test "over a Unix socket, publishing and subscribing" do
    Dir.mktmpdir do |folder|
      socket = File.join(folder, "hub.sock")
      hub = run_client(*Integration::HIKYAKU, "serve", "--dev", "--listen", "unix:#{socket}", "--resource-identifier", "http://localhost/.well-known/mercure")
      eventually("the socket") { File.socket?(socket) }
      url = "http://localhost/.well-known/mercure"
      token, = ClientProcess.run(*Integration::HIKYAKU, "token", "--dev", "--resource-identifier", url, "--publish", "*")
      stream = listen("--unix-socket", socket, "#{url}?match=#{BOOK}")
      status, = ask("--unix-socket", socket, url, "-H", "Authorization: Bearer #{token.strip}", "-d", "topic=#{BOOK}", "-d", "data=local")
      assert_equal 200, status
      stream.until(/^data: local\n\n/)
      hub.signal("TERM")
      assert_equal 0, hub.status.exitstatus, hub.errors
      assert_equal 0, stream.status.exitstatus, "the stream did not end whole"
      refute File.exist?(socket)
    end
  end

  test "requests one after another share a connection" do
    hub = self.class.hub
    config = Array.new(3) { |number| %(url = "#{hub.url}"\ndata = "topic=#{BOOK}&data=#{number}"\nheader = "Authorization: Bearer #{hub.token(publish: ["*"])}"\nwrite-out = "\\n%{http_code} %{num_connects}\\n"\n) }.join("next\n")
    out, = ClientProcess.run(curl, "-sS", "--max-time", "10", "-K", "-", input: config)
    assert_equal ["200 1", "200 0", "200 0"], out.scan(/^\d{3} \d$/)
  end
end
