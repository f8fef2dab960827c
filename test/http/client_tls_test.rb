# frozen_string_literal: true

require "test_helper"
require "openssl"
require "pathname"
require "tempfile"
require "tmpdir"
require "hikyaku/http/client"
require "hikyaku/http/proxy"

# The client against servers with TLS on the loopback: who is believed.
class HTTPClientTLSTest < Minitest::Test
  Client = Hikyaku::HTTP::Client
  private_constant :Client

  # Issues certificates, its own included.
  class Authority
    # @return [OpenSSL::X509::Certificate]
    attr_reader :certificate

    # @param name [String]
    # @param by [Authority] who vouches for it
    def initialize(name = "an authority", by: self)
      @key = OpenSSL::PKey::EC.generate("prime256v1")
      @certificate = made("/CN=#{name}", @key, constraints: "CA:TRUE")
      by.vouch(@certificate)
    end

    # @param certificate [OpenSSL::X509::Certificate]
    def vouch(certificate)
      certificate.issuer = @certificate.subject
      certificate.sign(@key, "SHA256")
    end

    # @return [Tempfile] what a client is given to trust
    def file = @file ||= Tempfile.new("authority").tap { |file| file.write(@certificate.to_pem) && file.flush }

    # @return [OpenSSL::SSL::SSLContext] of a server
    def context(names, from: Time.now - 60, to: Time.now + 3600)
      issued, key = issued("/CN=a server", names: names, from: from, to: to)
      OpenSSL::SSL::SSLContext.new.tap { |context| context.cert, context.key = issued, key }
    end

    # @return [Array(OpenSSL::X509::Certificate, OpenSSL::PKey)]
    def issued(subject, key: OpenSSL::PKey::EC.generate("prime256v1"), **options) = [made(subject, key, **options).tap { |one| vouch(one) }, key]

    private

    def made(subject, key, constraints: nil, names: nil, from: Time.now - 60, to: Time.now + 3600)
      certificate = OpenSSL::X509::Certificate.new
      certificate.version = 2
      certificate.serial = rand(1..1_000_000)
      certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse(subject)
      certificate.public_key = OpenSSL::PKey.read(key.public_to_pem)
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

  test "a server that asks who a client is has its certificate, given as files, as objects, and with who vouches for it" do
    between = Authority.new("between", by: AUTHORITY)
    certificate, key = between.issued("/CN=ada")
    rsa = AUTHORITY.issued("/CN=grace", key: OpenSSL::PKey::RSA.new(2048))
    Dir.mktmpdir do |folder|
      write = ->(name, *parts) { File.join(folder, name).tap { |path| File.write(path, parts.map(&:to_pem).join) } }
      chain, alone = write.call("chain.pem", certificate, between.certificate), write.call("key.pem", key)
      locked = File.join(folder, "locked.pem").tap { |path| File.write(path, key.private_to_pem(OpenSSL::Cipher.new("aes-256-cbc"), "pass")) }
      {
        {client_cert: chain, client_key: alone} => "ada", {client_cert: Pathname(chain), client_key: Pathname(alone)} => "ada", {client_cert: write.call("both.pem", certificate, between.certificate, key)} => "ada",
        {client_cert: chain, client_key: locked, client_key_password: "pass"} => "ada", {client_cert: [certificate, between.certificate], client_key: key} => "ada", {client_cert: rsa.first, client_key: rsa.last} => "grace"
      }.each do |options, name|
        [nil, :TLS1_2].each { |version| asking(version) { |port, seen| assert_equal ["ok", ["/CN=#{name}"]], [client(ca_file: AUTHORITY.file.path, **options).get("https://localhost:#{port}/").body, seen] } }
      end
    end
  end

  test "a server that asks who a client is refuses one that does not say, and one for whom nobody vouches" do
    [nil, :TLS1_2].each do |version|
      [{}, Authority.new("other").issued("/CN=eve").then { |certificate, key| {client_cert: certificate, client_key: key} }, AUTHORITY.issued("/CN=old", to: Time.now - 10).then { |certificate, key| {client_cert: certificate, client_key: key} }].each do |options|
        asking(version) do |port, seen|
          error = assert_raises(Hikyaku::HTTP::RequestFailed) { client(ca_file: AUTHORITY.file.path, **options).get("https://localhost:#{port}/secret") }
          assert_includes [Hikyaku::HTTP::ConnectFailed, Hikyaku::HTTP::ConnectionLost], error.class
          assert_match(/client_cert:/, error.message) if options.empty?
          assert_empty seen
        end
      end
    end
  end

  test "clients with other certificates share no connection" do
    ada, eve = %w[ada eve].map { |name| AUTHORITY.issued("/CN=#{name}").then { |certificate, key| client(ca_file: AUTHORITY.file.path, client_cert: certificate, client_key: key) } }
    asking { |port, seen| 2.times { [ada, eve].each { |one| one.get("https://localhost:#{port}/") } } and assert_equal %w[/CN=ada /CN=eve /CN=ada /CN=eve], seen }
  end

  test "a certificate that cannot be used is refused before anything is asked, and nothing secret is told" do
    certificate, key = AUTHORITY.issued("/CN=ada")
    Dir.mktmpdir do |folder|
      good, alone, none, locked = %w[good.pem key.pem none.pem locked.pem].map { |name| File.join(folder, name) }
      {good => certificate.to_pem, alone => key.to_pem, none => "nothing", locked => key.private_to_pem(OpenSSL::Cipher.new("aes-256-cbc"), "s3cret")}.each { |path, text| File.write(path, text) }
      {
        {client_cert: "/missing.pem"} => /client_cert "\/missing\.pem" cannot be read/, {client_cert: none} => /client_cert .* has no certificate/, {client_cert: good} => /client_cert .* has no private key/,
        {client_cert: good, client_key: none} => /client_key .* has no private key/, {client_cert: good, client_key: "/missing.pem"} => /client_key "\/missing\.pem" cannot be read/,
        {client_cert: certificate} => /client_key is not given/, {client_cert: certificate, client_key: AUTHORITY.issued("/CN=eve").last} => /not the key of client_cert/, {client_key: alone} => /without client_cert/,
        {client_key_password: "s3cret"} => /without client_cert/, {client_cert: 5, client_key: key} => /client_cert is a file/, {client_cert: [], client_key: key} => /client_cert is a file/, {client_cert: good, client_key: 5} => /client_key is no private key/,
        {client_cert: good, client_key: OpenSSL::PKey.read(key.public_to_pem)} => /client_key is no private key/, {client_cert: good, client_key: locked} => /without client_key_password/,
        {client_cert: good, client_key: locked, client_key_password: "s3cret2"} => /with this client_key_password/, {client_cert: good, client_key: key.to_pem} => /client_key is PEM; it is the path/
      }.each do |options, message|
        error = assert_raises(ArgumentError, options.inspect) { client(**options) }
        assert_match message, error.message
        refute_match(/s3cret|#{key.to_pem.lines[1].chomp[0, 20].then { |text| Regexp.escape(text) }}/, error.message)
      end
      refute_match(/s3cret/, client(client_cert: good, client_key: locked, client_key_password: "s3cret").inspect)
    end
  end

  private

  # @yieldparam port [Integer]
  # @yieldparam seen [Array<String>] the subject of who asked, of each request
  def asking(version = nil, &block)
    context = AUTHORITY.context(HERE)
    context.verify_mode = OpenSSL::SSL::VERIFY_PEER | OpenSSL::SSL::VERIFY_FAIL_IF_NO_PEER_CERT
    context.cert_store = OpenSSL::X509::Store.new.tap { |store| store.add_cert(AUTHORITY.certificate) }
    context.max_version = OpenSSL::SSL::TLS1_2_VERSION if version
    serve(context, note: ->(tls, _line) { tls.peer_cert.subject.to_s }, &block)
  end

  def client(**options) = Client.new(memory: nil, cache: false, proxy: nil, **options)

  def refuse(context, host)
    serve(context) do |port, requests|
      assert_raises(Hikyaku::HTTP::ConnectFailed) { client(ca_file: AUTHORITY.file.path).get("https://#{host}:#{port}/") }
      assert_empty requests
    end
  end

  # @yieldparam port [Integer]
  # @yieldparam requests [Array<String>] the targets that were asked for
  def serve(context, answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", note: ->(_tls, line) { line.split[1] })
    listener = TCPServer.new("127.0.0.1", 0)
    requests = []
    threads = [] # before the thread reads it
    threads << Thread.new { loop { threads << Thread.new(listener.accept) { |socket| converse(socket, context, requests, answer, note) } } }
    threads.first.report_on_exception = false
    yield listener.addr[1], requests
  ensure
    threads.each(&:kill)
    listener.close
  end

  def converse(socket, context, requests, answer, note)
    tls = OpenSSL::SSL::SSLSocket.new(socket, context)
    tls.accept
    while (line = tls.gets)
      requests << note.call(tls, line)
      nil until tls.gets == "\r\n"
      tls.write(answer)
    end
  rescue IOError, SystemCallError, OpenSSL::SSL::SSLError
    nil
  ensure
    socket.close
  end
end
