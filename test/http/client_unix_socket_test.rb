# frozen_string_literal: true

require "test_helper"
require "openssl"
require "socket"
require "tmpdir"
require "hikyaku/http/client"
require "support/misbehaving"
require "support/rack_site"
require "support/scripted_server"

# What is reached by a Unix socket.
class HTTPClientUnixSocketTest < Minitest::Test
  HTTP = Hikyaku::HTTP
  private_constant :HTTP

  APP = ->(env) { [200, {}, ["#{env["HTTP_HOST"]} #{env["REQUEST_URI"]} #{env["rack.input"].read}"]] }
  private_constant :APP

  test "every origin is asked by the socket, and Host is the URL's" do
    site do |path, client|
      assert_equal "a.example /b?c ", client.get("http://a.example/b?c").text
      assert_equal "other.test:8080 / body", client.post("http://other.test:8080/", body: "body").text
      assert_match(/by #{Regexp.escape(path)} is/, client.explain("http://a.example"))
    end
  end

  test "many at once are asked behind one another there, too" do
    site(max_connections: 1) do |_, client|
      client.get("http://a.example/")
      3.times do |round|
        outcomes = client.get(Array.new(50) { |n| "http://a.example/#{round}-#{n}" })
        assert_equal Array.new(50) { |n| "a.example /#{round}-#{n} " }, outcomes.map { |outcome| outcome.value.text }
      end
      assert_match(/is pipelined/, client.explain("http://a.example"))
    end
  end

  test "where answers of one write come one after another, none is asked for twice" do
    folder do |path|
      half = Queue.new
      answer = ->(peer) { peer.answer(200, "ok") if peer.read_request }
      server = ScriptedServer.new(lambda { |peer|
        3.times { answer.call(peer) } # alone, and two together
        answer.call(peer)
        half.pop
        answer.call(peer) while server.requests.size < 5 || !peer.io.closed?
      }, unix: path)
      client = client(path, max_connections: 1)
      client.get("http://a.example/1")
      client.get("http://a.example/2", "http://a.example/3")
      both = client.together { [4, 5].map { |n| client.fetch("http://a.example/#{n}") } }
      assert_equal "ok", both.first.value.text
      half << true
      assert_equal "ok", both.last.value.text
      assert_equal [1, 5], [server.connections, server.requests.size]
    ensure
      client&.close
      server&.close
    end
  end

  test "a redirect is followed by the socket, wherever it leads" do
    app = ->(env) { (env["PATH_INFO"] == "/a") ? [302, {"location" => "http://elsewhere.example/b"}, []] : APP.call(env) }
    site(app) { |_, client| assert_equal "elsewhere.example /b ", client.get("http://a.example/a").text }
  end

  test "TLS is spoken with the server of the URL's name" do
    folder do |path|
      certificate, key = ScriptedServer.certificate("a.example")
      server = ScriptedServer.new(->(peer) { peer.answer_all(200, "hello") }, unix: path, tls: [certificate, key])
      File.write("#{path}.pem", certificate.to_pem)
      client = client(path, ca_file: "#{path}.pem")
      assert_equal "hello", client.get("https://a.example/").text
      assert_raises(HTTP::ConnectFailed) { client.get("https://b.example/") }
    ensure
      client&.close
      server&.close
    end
  end

  test "the variables of the environment that name a proxy mean nothing there" do
    before = ENV.to_h
    ENV["http_proxy"] = "http://127.0.0.1:1"
    site { |_, client| assert_equal "a.example / ", client.get("http://a.example/").text }
  ensure
    ENV.replace(before)
  end

  test "what is known of an origin by a socket is not taken for what is known of it elsewhere" do
    site do |path, client|
      Dir.mktmpdir do |folder|
        memory = File.join(folder, "origins.json")
        one = HTTP::Client.new(memory: memory, unix_socket: path)
        one.get("http://a.example/")
        one.close
        assert_equal ["http://a.example by #{path}"], JSON.parse(File.read(memory))["origins"].keys
        assert_match(/not known yet/, HTTP::Client.new(memory: memory, proxy: nil).explain("http://a.example"))
      end
    end
  end

  test "clients with other sockets share no connection" do
    site(->(_) { [200, {}, ["one"]] }) do |_, one|
      site(->(_) { [200, {}, ["other"]] }) do |_, other|
        Misbehaving.run(:well_behaved) do |server|
          2.times do
            assert_equal ["one", "other", Misbehaving.body_of("/")], [one, other, HTTP::Client.new(memory: nil, proxy: nil)].map { |client| client.get(server.url("/")).text }
          end
        end
      end
    end
  end

  test "where nobody listens, or there is none, the error names the socket" do
    folder do |path|
      {path => /no connection to the socket #{Regexp.escape(path)}: No such file/, __FILE__ => /no connection to the socket #{Regexp.escape(__FILE__)}: Connection refused/}.each do |socket, message|
        assert_match message, assert_raises(HTTP::ConnectFailed) { client(socket).get("http://a.example/") }.message
      end
    end
  end

  test "where more wait than the socket takes, it is tried until there is a place" do
    folder do |path|
      listener = Socket.new(:UNIX, :STREAM)
      listener.bind(Addrinfo.unix(path))
      listener.listen(0)
      held = fill(path)
      client = client(path, timeouts: {connect: 120})
      fetch = client.fetch("http://a.example/")
      waiting = Thread.new { fetch.value.text }
      Thread.pass until waiting.stop?
      serving = Thread.new { (held.size + 1).times { listener.accept.first.then { |io| io.gets && io.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") } } }
      held.each(&:close)
      assert_equal "ok", waiting.value
    ensure
      serving&.kill&.join
      client&.close
      listener&.close
    end
  end

  test "while it takes nobody the connection takes too long" do
    folder do |path|
      listener = Socket.new(:UNIX, :STREAM)
      listener.bind(Addrinfo.unix(path))
      listener.listen(0)
      held = fill(path)
      error = assert_raises(HTTP::TimedOut) { client(path, timeouts: {connect: 0.2}).get("http://a.example/", timeout: 120) }
      assert_equal [:connect, true], [error.phase, error.message.include?("the socket #{path}, within 0.2 s")]
    ensure
      held&.each(&:close)
      listener&.close
    end
  end

  test "what makes no sense is refused" do
    {
      {unix_socket: "/a", proxy: "http://127.0.0.1:1"} => /proxy: are given/, {unix_socket: "/a", destinations: ->(*) {}} => /destinations: are given/, {unix_socket: "/#{"a" * 200}"} => /cannot be the path of a socket/,
      {unix_socket: "/a\0b"} => /cannot be the path of a socket: it has a NUL/, {unix_socket: ""} => /cannot be the path of a socket: it is empty/
    }.each { |options, message| assert_match message, assert_raises(ArgumentError) { HTTP::Client.new(memory: nil, **options) }.message }
    assert HTTP::Client.new(memory: nil, unix_socket: "/a", proxy: nil)
  end

  private

  def client(path, timeouts: {}, **options) = HTTP::Client.new(memory: nil, unix_socket: path, timeouts: {total: 120}.merge(timeouts), **options)

  def folder(&block) = Dir.mktmpdir { |folder| yield File.join(folder, "s") }

  def site(app = APP, **options)
    folder do |path|
      RackSite.run(app, unix: path) do
        client = client(path, **options)
        yield path, client
      ensure
        client&.close
      end
    end
  end

  # @return [Array<Socket>] connections that nobody accepts, as many as there is room for
  def fill(path)
    held = []
    loop do
      socket = Socket.new(:UNIX, :STREAM)
      socket.connect_nonblock(Addrinfo.unix(path))
      held << socket
    rescue Errno::EAGAIN
      socket.close
      return held
    end
  end
end
