# frozen_string_literal: true

require "test_helper"
require "openssl"
require "tempfile"
require "hikyaku/http/client"
require "hikyaku/http/proxy"

# The client against servers with TLS on the loopback: who is believed.
class HTTPClientTLSTest < Minitest::Test
  Client = Hikyaku::HTTP::Client
  private_constant :Client

  # Issues certificates, its own included.
  class Authority
    def initialize
      @key = OpenSSL::PKey::EC.generate("prime256v1")
      @certificate = certificate("/CN=an authority", @key, constraints: "CA:TRUE")
      @certificate.sign(@key, "SHA256")
    end

    # @return [Tempfile] what a client is given to trust
    def file = @file ||= Tempfile.new("authority").tap { |file| file.write(@certificate.to_pem) && file.flush }

    # @return [OpenSSL::SSL::SSLContext] of a server
    def context(names, from: Time.now - 60, to: Time.now + 3600)
      key = OpenSSL::PKey::EC.generate("prime256v1")
      issued = certificate("/CN=a server", key, names: names, from: from, to: to)
      issued.issuer = @certificate.subject
      issued.sign(@key, "SHA256")
      OpenSSL::SSL::SSLContext.new.tap { |context| context.cert, context.key = issued, key }
    end

    private

    def certificate(subject, key, constraints: nil, names: nil, from: Time.now - 60, to: Time.now + 3600)
      certificate = OpenSSL::X509::Certificate.new
      certificate.version = 2
      certificate.serial = rand(1..1_000_000)
      certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse(subject)
      certificate.public_key = OpenSSL::PKey::EC.new(key.public_to_pem)
      certificate.not_before, certificate.not_after = from, to
      extensions = OpenSSL::X509::ExtensionFactory.new
      certificate.add_extension(extensions.create_extension("basicConstraints", constraints, true)) if constraints
      certificate.add_extension(extensions.create_extension("subjectAltName", names)) if names
      certificate
    end
  end

  AUTHORITY = Authority.new
  HERE = "DNS:localhost,IP:127.0.0.1,IP:::1"
  private_constant :Authority, :AUTHORITY, :HERE

  # RFC 9112, section 9.8.
  test "a body that ends with the connection is whole only where TLS says that it ends" do
    {true => "all", false => nil}.each do |says, body|
      TCPServer.open("127.0.0.1", 0) do |listener|
        serving = Thread.new do
          loop do
            socket = listener.accept
            tls = OpenSSL::SSL::SSLSocket.new(socket, AUTHORITY.context(HERE)).tap(&:accept)
            nil until tls.gets == "\r\n"
            tls.write("HTTP/1.1 200 OK\r\n\r\nall")
            tls.close if says
            socket.close
          end
        end
        get = -> { client(ca_file: AUTHORITY.file.path).get("https://localhost:#{listener.local_address.ip_port}/").body }
        body ? assert_equal(body, get.call) : assert_raises(Hikyaku::HTTP::RequestFailed, &get)
      ensure
        serving&.kill
      end
    end
  end

  test "a certificate that nobody vouches for is refused before anything is said, and the message says so" do
    serve(AUTHORITY.context(HERE)) do |port, requests|
      [client, client(memory: nil, cache: true)].each do |client|
        error = assert_raises(Hikyaku::HTTP::ConnectFailed) { client.get("https://localhost:#{port}/secret?secret", headers: {"Authorization" => "secret"}) }
        assert_match(%r{TLS.* https://localhost:#{port}.*certificate verify failed.*; .* ca_file:}, error.message)
        refute_includes error.message, "secret"
      end
      assert_empty requests
    end
  end

  test "with the certificate of who vouches for it a server is believed, by name and by address" do
    serve(AUTHORITY.context(HERE)) do |port, requests|
      trusting = client(ca_file: AUTHORITY.file.path)
      ["localhost", "127.0.0.1"].each { |host| assert_equal "ok", trusting.get("https://#{host}:#{port}/#{host}").body }
      assert_equal %w[ok ok], trusting.get("https://localhost:#{port}/a", "https://localhost:#{port}/b").map(&:body)
      assert_equal %w[/localhost /127.0.0.1], requests.first(2)
    end
  end

  test "a certificate for another name, or out of date, is refused, whoever vouches for it" do
    {
      "DNS:other.example" => "localhost", "DNS:*.localhost" => "localhost", "DNS:localhost" => "127.0.0.1", "IP:127.0.0.1" => "localhost"
    }.each { |names, host| refuse(AUTHORITY.context(names), host) }
    refuse(AUTHORITY.context(HERE, from: Time.now - 7200, to: Time.now - 3600), "localhost")
    refuse(AUTHORITY.context(HERE, from: Time.now + 3600, to: Time.now + 7200), "localhost")
    refuse(Authority.new.context(HERE), "localhost")
  end

  test "through a proxy the server is verified all the same" do
    serve(AUTHORITY.context(HERE)) do |port, requests|
      proxy = Hikyaku::HTTP::Proxy.new(memory: nil, allow: ["127.0.0.0/8"])
      thread = Thread.new { proxy.run }
      assert_equal "ok", client(ca_file: AUTHORITY.file.path, proxy: proxy.url).get("https://127.0.0.1:#{port}/a").body
      assert_raises(Hikyaku::HTTP::ConnectFailed) { client(proxy: proxy.url).get("https://127.0.0.1:#{port}/b") }
      assert_equal %w[/a], requests
    ensure
      proxy&.stop
      thread&.join
    end
  end

  test "only where it is told so, for tests, does it believe anybody" do
    serve(Authority.new.context("DNS:localhost")) do |port, _|
      assert_equal "ok", client(verify: false).get("https://localhost:#{port}/").body
    end
  end

  test "from https a redirect to http is not followed" do
    serve(AUTHORITY.context(HERE), answer: "HTTP/1.1 302 Found\r\nLocation: http://localhost:1/\r\nContent-Length: 0\r\n\r\n") do |port, _|
      error = assert_raises(Hikyaku::HTTP::BadRedirect) { client(ca_file: AUTHORITY.file.path).get("https://localhost:#{port}/") }
      assert_includes error.message, "http://localhost:1/"
    end
  end

  private

  def client(**options) = Client.new(memory: nil, cache: false, proxy: nil, **options)

  def refuse(context, host)
    serve(context) do |port, requests|
      assert_raises(Hikyaku::HTTP::ConnectFailed) { client(ca_file: AUTHORITY.file.path).get("https://#{host}:#{port}/") }
      assert_empty requests
    end
  end

  # @yieldparam port [Integer]
  # @yieldparam requests [Array<String>] the targets that were asked for
  def serve(context, answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    listener = TCPServer.new("127.0.0.1", 0)
    requests = []
    threads = [Thread.new { loop { threads << Thread.new(listener.accept) { |socket| converse(socket, context, requests, answer) } } }]
    threads.first.report_on_exception = false
    yield listener.addr[1], requests
  ensure
    threads.each(&:kill)
    listener.close
  end

  def converse(socket, context, requests, answer)
    tls = OpenSSL::SSL::SSLSocket.new(socket, context)
    tls.accept
    while (line = tls.gets)
      requests << line.split[1]
      nil until tls.gets == "\r\n"
      tls.write(answer)
    end
  rescue IOError, SystemCallError, OpenSSL::SSL::SSLError
    nil
  ensure
    socket.close
  end
end
