# frozen_string_literal: true

require_relative "cli_helper"
require "hikyaku/server"
require "json"
require "open3"
require "rbconfig"
require "socket"
require "tempfile"
require "timeout"
require "tmpdir"

# The commands that talk to a hub, with a real one.
class CLIClientTest < Minitest::Test
  include CommandLine

  TOPIC = "https://example.com/books/1"

  def setup
    @server = start
  end

  def teardown
    @server.stop
  end

  def start(listen: "127.0.0.1:0", **settings)
    Hikyaku::Server.new(Hikyaku::Config.new(dev: true, listen: listen, **settings), logger: Logger.new(IO::NULL)).start
  end

  def dev = ["--dev", "--listen", @server.config.listen]

  def publish(*arguments, **options) = done("publish", *dev, *arguments, **options).chomp

  def history(*arguments)
    done("subscribe", *dev, "--last-event-id", "earliest", "--exit-after", "5", "--json", *arguments).lines.map { |line| JSON.parse(line) }
  end

  test "publish prints the event id, and subscribe prints the update" do
    id = publish(TOPIC, "one\ntwo")
    assert_match(/\A#\S+\z/, id)
    assert_equal [{"id" => id, "type" => "message", "data" => "one\ntwo"}], history("--match", TOPIC, "--count", "1")
    text = done("subscribe", *dev, "--last-event-id", "earliest", "--match", "*", "--count", "1", "--exit-after", "5")
    assert_equal "id: #{id}\ndata: one\ndata: two\n\n", text
  end

  test "every field of an update can be told" do
    id = publish(TOPIC, "-", "--topic", "https://example.com/users/42", "--private", "--id", "mine", "--type", "changed", "--retry", "1500", stdin: "from stdin")
    assert_equal "mine", id
    assert_equal [{"id" => "mine", "type" => "changed", "data" => "from stdin"}], history("--match", "https://example.com/users/42", "--count", "1")
  end

  test "private updates come with a token, and --public has none" do
    publish(TOPIC, "secret", "--private")
    publish(TOPIC, "open")
    assert_equal %w[secret open], history("--match", TOPIC, "--count", "2").map { |event| event["data"] }
    assert_equal %w[open], history("--match", TOPIC, "--count", "1", "--public").map { |event| event["data"] }
  end

  test "patterns and the topics of Mercure 0.x select" do
    publish(TOPIC, "a", "--private")
    publish("https://example.com/authors/1", "b", "--private")
    assert_equal %w[a], history("--pattern", "https://example.com/books/:id", "--count", "1").map { |event| event["data"] }
    assert_equal %w[b], history("--topic", "https://example.com/authors/{id}", "--count", "1").map { |event| event["data"] }
  end

  test "a topic is canonical but once" do
    assert publish(TOPIC, "x", "--topic", TOPIC)
    assert publish(TOPIC)
  end

  test "subscribe ends after a time" do
    assert_equal "", done("subscribe", *dev, "--match", "https://example.com/quiet", "--exit-after", "0.2")
  end

  test "a token of one's own is used, from the flag or the environment" do
    token = done("token", *dev, "--publish", TOPIC).chomp
    hub = @server.url
    assert done("publish", "--hub", hub, "--token", token, TOPIC)
    assert done("publish", TOPIC, env: {"HIKYAKU_HUB" => hub, "HIKYAKU_TOKEN" => token})
    message = refused("publish", "--hub", hub, "--token", token, "https://example.com/other", code: 1)
    assert_match(/403/, message)
    refute_includes message, token
    assert_match(/401/, refused("publish", "--hub", hub, "--token", "nonsense", TOPIC, code: 1))
  end

  test "a hub that is named by its host alone has the configured path" do
    assert done("publish", "--dev", "--hub", @server.url.delete_suffix("/.well-known/mercure"), TOPIC, "x")
  end

  test "disconnect closes the streams of a subject" do
    assert_equal "0 streams closed\n", done("disconnect", *dev, "nobody/at all")
    subject = "urn:user:4 2/\u00E9"
    token = done("token", *dev, "--subscribe", "*", "--subject", subject).chomp
    socket = TCPSocket.new("127.0.0.1", @server.config.address.port)
    socket.write("GET /.well-known/mercure?match=* HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer #{token}\r\n\r\n")
    assert_match(/200/, socket.gets)
    assert_equal "1 stream closed\n", done("disconnect", *dev, subject)
    assert_match(/retry/, socket.read)
    assert_equal "0 streams closed\n", done("disconnect", *dev, "--revoke", subject)
  ensure
    socket&.close
  end

  test "disconnect says why the hub refuses" do
    assert_match(/403/, refused("disconnect", *dev, "--token", done("token", *dev, "--publish", TOPIC).chomp, "ann", code: 1))
    assert_match(/404/, refused("disconnect", "--hub", "#{@server.url}x", "--token", "x", "ann", code: 1))
  end

  test "a hub on a Unix socket is found from the same configuration" do
    Dir.mktmpdir do |folder|
      server = start(listen: "unix:#{folder}/hub.sock")
      flags = ["--dev", "--listen", "unix:#{folder}/hub.sock"]
      id = done("publish", *flags, TOPIC, "x").chomp
      out = done("subscribe", *flags, "--match", TOPIC, "--last-event-id", "earliest", "--json", "--count", "1", "--exit-after", "5")
      assert_equal id, JSON.parse(out)["id"]
      assert_equal "0 streams closed\n", done("disconnect", *flags, "ann")
    ensure
      server&.stop
    end
  end

  test "a hub that cannot be reached is one line and code 1" do
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    hub = "http://127.0.0.1:#{port}/hub"
    assert_match(/cannot be reached/, refused("publish", "--dev", "--hub", hub, TOPIC, code: 1))
    assert_match(/cannot be reached/, refused("disconnect", "--dev", "--hub", hub, "ann", code: 1))
    assert_match(/refused/, refused("subscribe", "--dev", "--hub", hub, "--match", TOPIC, code: 1))
  end

  # [arguments, what the message holds]
  [
    [%w[publish --dev], "give a TOPIC"], [%w[publish] + [TOPIC], "there is no token and no key"],
    [%w[publish --dev --retry soon] + [TOPIC], "--retry: expected a whole number of milliseconds"],
    [%w[publish --token x --hub ftp://a.example/x] + [TOPIC], "http(s)://HOST/PATH"],
    [%w[publish --token x --hub] + ["http://a b/"] + [TOPIC], "hub's URL"],
    [%w[publish --token x --hub http://hub.example/hub] + [TOPIC], "give --insecure"],
    [%w[subscribe --dev], "give --match or --pattern"], [%w[subscribe --dev --match * --count 0], "--count: expected"],
    [%w[subscribe --dev --match * --count -1], "--count: expected"], [%w[subscribe --dev --match * --exit-after 0], "--exit-after: expected"],
    [%w[subscribe --dev --match * --exit-after never], "--exit-after: expected"],
    [%w[subscribe --token x --match * --hub http://hub.example/hub], "give --insecure"],
    [%w[disconnect --dev], "give a SUBJECT"], [%w[disconnect ann], "there is no token and no key"],
    [%w[disconnect --token x --hub http://hub.example/hub ann], "give --insecure"]
  ].each_with_index do |(arguments, part), index|
    test "wrong request #{index} of a client is refused" do
      assert_includes refused(*arguments), part
    end
  end

  test "an interrupt ends subscribe quietly, with code 130, and so does a reader that goes away, with 141" do
    exe = File.expand_path("../../exe/hikyaku", __dir__)
    {"INT" => 130, nil => 141}.each do |signal, code|
      publish(TOPIC, "first")
      Open3.popen3(RbConfig.ruby, exe, "subscribe", *dev, "--match", "*", "--last-event-id", "earliest") do |_in, out, err, process|
        Timeout.timeout(60) { assert_match(/\Aid: /, out.gets) }
        if signal
          Process.kill(signal, process.pid)
        else
          out.close
          publish(TOPIC, "second")
        end
        assert_equal code, Timeout.timeout(60) { process.value.exitstatus }
        assert_empty err.read
      end
    end
  end

  test "a wrong matcher is refused by the hub, with one line" do
    assert_match(/answered 40[01]/, refused("subscribe", *dev, "--public", "--pattern", "/books/{", "--exit-after", "5", code: 1))
  end
end
