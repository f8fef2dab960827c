# frozen_string_literal: true

require "support/integration"
require "support/awaited_process"
require "support/snippets"
require "fileutils"
require "net/http"
require "puma"
require "puma/server"
require "rack/conditional_get"
require "rack/etag"
require "rack/head"
require "zlib"
require "hikyaku/codec/rack/compression"
require "hikyaku/http/content_coding"
require "support/puma_buffers"

# Compression where it is used: in Puma, with clients that are not ours, and left to nginx as docs/guides/compression.md says.
class CodecCompressionTest < Integration::Test
  TEXT = "{\"name\":\"H\u014Dryu\"}," * 300
  JSON = {"content-type" => "application/json"}.freeze

  # nginx with the lines of the guide in front of an application.
  class Proxy
    include AwaitedProcess

    LINES = Snippets.of("docs/guides/compression.md").find { |snippet| snippet.language == "nginx" }.code
    TEMPORARY = %w[client_body proxy fastcgi uwsgi scgi].freeze

    attr_reader :port

    def initialize(application)
      @folder = Dir.mktmpdir("hikyaku-nginx")
      @port = FreePort.pick
      File.write(path("nginx.conf"), <<~CONF)
        daemon off;
        #{"user #{Etc.getpwuid.name} #{Etc.getgrgid.name};" if Process.uid.zero?}
        worker_processes 1;
        pid #{path("nginx.pid")};
        events { worker_connections 64; }
        http {
          access_log off;
          #{TEMPORARY.map { |name| "#{name}_temp_path #{path("tmp-#{name}")};" }.join("\n")}
          #{LINES}
          server {
            listen 127.0.0.1:#{port};
            location / { proxy_pass http://127.0.0.1:#{application}; }
          }
        }
      CONF
      @pid = Process.spawn(Availability.path_of("nginx"), "-p", @folder, "-e", path("error.log"), "-c", path("nginx.conf"), out: path("out.log"), err: %i[child out], in: File::NULL)
      await_start
    end

    def stop
      Process.kill("TERM", @pid)
      await_end("nginx", 10)
    ensure
      FileUtils.rm_rf(@folder)
    end

    private

    def path(name) = File.join(@folder, name)

    def log = File.read(path("out.log"))

    def await_start
      deadline = now + 60
      begin
        TCPSocket.new("127.0.0.1", port).close
      rescue Errno::ECONNREFUSED
        raise "nginx did not start: #{log}" if now > deadline || Process.wait(@pid, Process::WNOHANG)
        sleep 0.02
        retry
      end
    end
  end

  test "pieces arrive at a client as they are made, each readable before the next is there" do
    %w[gzip zstd br].each do |name|
      ready = Queue.new
      port = serve { [200, JSON.dup, Enumerator.new { |out| 4.times { out << ready.pop } }] }
      connection = ending(HttpClient.new(port).connect)
      connection.write("GET / HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: #{name}\r\n\r\n")
      ready << "first"
      response = connection.head(HttpClient.now + HttpClient::PATIENCE)
      assert_equal [name, "chunked"], [response["content-encoding"], response["transfer-encoding"]]
      decoder = Hikyaku::HTTP::ContentCoding.decoder([name], max_bytes: 10_000)
      assert_equal "first", read(connection, decoder, 5)
      %w[second third fourth].each do |piece|
        ready << piece
        assert_equal piece, read(connection, decoder, piece.bytesize)
      end
      while (rest = connection.body_part(HttpClient.now + HttpClient::PATIENCE)) do decoder << rest end
      assert_empty decoder.finish
    end
  end

  test "a client that goes away ends the body, which is closed once" do
    closed = Queue.new
    body = Object.new
    body.define_singleton_method(:each) { |&block| loop { block.call(Random.bytes(50_000)) } }
    body.define_singleton_method(:close) { closed << :closed }
    connection = HttpClient.new(serve { [200, JSON.dup, body] }).connect
    connection.write("GET / HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n")
    connection.head(HttpClient.now + HttpClient::PATIENCE)
    connection.close
    assert_equal :closed, eventually("the body to be closed") { closed.pop(true) unless closed.empty? }
    assert_empty closed
  end

  test "a body that raises in the middle breaks the response, and does not end it well" do
    port = serve { [200, JSON.dup, Enumerator.new { |out| (out << TEXT) && raise("the database is gone") }] }
    assert_raises(EOFError) { Net::HTTP.start("127.0.0.1", port) { |http| http.request_get("/", "Accept-Encoding" => "gzip") { |response| response.read_body } } }
    connection = HttpClient.new(port).connect
    connection.write("GET / HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n")
    response = connection.head(HttpClient.now + HttpClient::PATIENCE)
    bytes = connection.body(response, "GET", HttpClient.now + HttpClient::PATIENCE)
    inflate = Zlib::Inflate.new(Zlib::MAX_WBITS + 16)
    assert_equal TEXT.b, inflate.inflate(bytes.b)
    refute_predicate inflate, :finished?
  end

  test "curl reads every coding, and HEAD says what GET would, but for a length that is not known" do
    curl, = skip_unless_available("curl")
    known = {**JSON, "etag" => '"42"', "content-length" => TEXT.bytesize.to_s}
    port = serve { |env| [200, known.dup, (env["REQUEST_METHOD"] == "HEAD") ? [] : [TEXT]] }
    output, status = ClientProcess.run(curl, "-sS", "--compressed", "http://127.0.0.1:#{port}/")
    assert_equal [true, TEXT], [status.success?, output.dup.force_encoding(Encoding::UTF_8)]
    %w[gzip br zstd].each do |name|
      output, = ClientProcess.run(curl, "-sSI", "-H", "Accept-Encoding: #{name}", "http://127.0.0.1:#{port}/")
      assert_match(/^content-encoding: #{name}\r$/i, output)
      assert_match(/^etag: "42-#{name}"\r$/i, output)
      refute_match(/^content-length/i, output)
    end
    output, = ClientProcess.run(curl, "-sSi", "-H", "Accept-Encoding: gzip", "-H", 'If-None-Match: "42-gzip"', "http://127.0.0.1:#{port}/")
    assert_match(%r{\AHTTP/1.1 304}, output)
    assert_match(/^etag: "42-gzip"\r$/i, output)
  end

  test "nginx with the lines of the guide compresses what the application does not, MessagePack too" do
    skip_unless_available("nginx")
    application = lambda do |env|
      type = env["PATH_INFO"].delete_prefix("/")
      [200, {"content-type" => type, "etag" => 'W/"42"'}, [(env["QUERY_STRING"] == "small") ? "small" : TEXT]]
    end
    port = ending(Proxy.new(serve(compressed: false, &application))).port
    %w[application/json application/vnd.msgpack application/msgpack application/x-msgpack application/x-mpac text/html text/plain].each do |type|
      answer = get(port, "/#{type}")
      assert_equal ["gzip", "Accept-Encoding", 'W/"42"'], [answer["content-encoding"], answer["vary"], answer["etag"]], type
      assert_equal TEXT.b, Zlib.gunzip(answer.body.b)
      assert_equal [nil, TEXT.b], get(port, "/#{type}", accept: "identity").then { |plain| [plain["content-encoding"], plain.body.b] }
    end
    %w[image/png text/event-stream application/json?small].each { |path| assert_nil get(port, "/#{path}")["content-encoding"], path }
    assert_equal 304, get(port, "/application/json", "if-none-match" => 'W/"42"').status
  end

  test "nginx passes on what the application has compressed, and the size of both is about the same" do
    skip_unless_available("nginx")
    text = Array.new(400) { |index| %({"id":#{index},"name":"member #{index * 7919 % 997}","score":#{index * 104_729 % 9_973}}) }.join(",")
    ours = ending(Proxy.new(serve { [200, JSON.merge("etag" => '"42"'), [text]] })).port
    theirs = ending(Proxy.new(serve(compressed: false) { [200, JSON.dup, [text]] })).port
    answer = get(ours, "/")
    assert_equal ["gzip", '"42-gzip"', "Accept-Encoding", text], [answer["content-encoding"], answer["etag"], answer["vary"], Zlib.gunzip(answer.body.b)]
    assert_in_epsilon get(theirs, "/").body.bytesize, answer.body.bytesize, 0.03
  end

  private

  # @return [Integer] the port of Puma with an application
  def serve(compressed: true, &application)
    inside = Rack::Head.new(Rack::ConditionalGet.new(Rack::ETag.new(application)))
    puma = Puma::Server.new(compressed ? Hikyaku::Codec::Rack::Compression.new(inside) : inside, nil, min_threads: 1, max_threads: 3, environment: "production", log_writer: Puma::LogWriter.null)
    puma.add_tcp_listener("127.0.0.1", 0)
    puma.run
    ending(Struct.new(:puma) { def stop = puma.stop(true) }.new(puma))
    puma.connected_ports.first
  end

  def get(port, path, accept: "gzip", **fields) = HttpClient.new(port).request("GET", path, headers: {"accept-encoding" => accept, **fields})

  # So many bytes, decoded, and not one more.
  def read(connection, decoder, bytes)
    text = +""
    text << (decoder << connection.body_part(HttpClient.now + HttpClient::PATIENCE)) while text.bytesize < bytes
    text
  end
end
