# frozen_string_literal: true

require "openssl"
require "socket"
require "tmpdir"

# A server that does what a test says, byte by byte: each connection is given to the next block of the script, and the
# last block serves all that follow.
#
#     server = ScriptedServer.new(->(peer) { peer.read_request; peer.reset })
#     server.url   # => "http://127.0.0.1:40123/.well-known/mercure"
#     server.close
class ScriptedServer
  # One request as it came.
  Request = Struct.new(:verb, :target, :headers, :body) do
    def [](name) = headers[name]

    def form = URI.decode_www_form(body)
  end

  # One connection, from the server's side.
  class Peer
    attr_reader :io

    def initialize(io, requests)
      @io = io
      @requests = requests
    end

    # @return [Request, nil] nil when the client has closed
    def read_request
      verb, target = io.gets("\r\n")&.split
      return if verb.nil?

      headers = {}
      until (line = io.gets("\r\n").chomp).empty?
        name, value = line.split(": ", 2)
        headers[name.downcase] = value
      end
      request = Request.new(verb, target, headers, io.read(headers["content-length"].to_i))
      @requests << request
      request
    end

    def write(bytes)
      io.write(bytes)
      io.flush
    end

    def answer(status = 200, body = "", headers = {})
      fields = {"content-length" => body.bytesize}.merge(headers).compact
      write("HTTP/1.1 #{status} Status\r\n#{fields.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n#{body}")
    end

    # Answers every request of this connection alike.
    def answer_all(...)
      answer(...) while read_request
    end

    def event_stream(bytes = "", headers = {})
      answer(200, "", {"content-type" => "text/event-stream", "content-length" => nil}.merge(headers))
      write(bytes)
    end

    # @return [void] when the client has closed
    def wait_for_close
      io.read
    end

    # The client gets ECONNRESET in place of an end.
    def reset
      socket = io.to_io
      socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
      socket.close
    end
  end

  # @return [Array<Request>] in the order in which they came
  attr_reader :requests
  # @return [Integer] connections so far
  attr_reader :connections
  attr_reader :port, :path

  # @param script [Array<#call>] one a connection, called with its Peer
  # @param unix [String, nil] path of a socket, in place of a port
  # @param tls [Array(OpenSSL::X509::Certificate, OpenSSL::PKey), nil]
  def initialize(*script, unix: nil, tls: nil, path: "/.well-known/mercure")
    @script = script
    @tls = tls
    @path = path
    @requests = []
    @connections = 0
    @threads = []
    @listener = unix ? UNIXServer.new(unix) : TCPServer.new("127.0.0.1", 0)
    @port = @listener.addr[1] unless unix
    @acceptor = Thread.new { accept }
  end

  def url(host = "127.0.0.1") = "#{@tls ? "https" : "http"}://#{host}:#{@port}#{@path}"

  # Ends everything, and raises what went wrong in the script.
  def close
    @listener.close
    @acceptor.join
    @threads.each { |thread| thread.kill unless thread.join(0.5) }
    @threads.each(&:join)
  end

  # A certificate that only those trust who are told so.
  def self.certificate(name)
    key = OpenSSL::PKey::EC.generate("prime256v1")
    certificate = OpenSSL::X509::Certificate.new
    certificate.version = 2
    certificate.serial = 1
    certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=#{name}")
    certificate.public_key = key
    certificate.not_before = Time.now - 60
    certificate.not_after = Time.now + 3600
    extensions = OpenSSL::X509::ExtensionFactory.new(certificate, certificate)
    certificate.add_extension(extensions.create_extension("basicConstraints", "CA:TRUE", true))
    certificate.add_extension(extensions.create_extension("subjectAltName", "DNS:#{name}"))
    certificate.sign(key, OpenSSL::Digest.new("SHA256"))
    [certificate, key]
  end

  private

  def accept
    loop do
      io = @listener.accept
      step = @script[[@connections, @script.size - 1].min]
      @connections += 1
      @threads << Thread.new { serve(io, step) }
    end
  rescue IOError, SystemCallError
    nil
  end

  def serve(io, step)
    Thread.current.report_on_exception = false
    io.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1) if @port
    step.call(Peer.new(@tls ? encrypted(io) : io, @requests))
  rescue Errno::EPIPE, Errno::ECONNRESET, OpenSSL::SSL::SSLError
    nil
  ensure
    io.close
  end

  def encrypted(io)
    context = OpenSSL::SSL::SSLContext.new
    context.cert, context.key = @tls
    OpenSSL::SSL::SSLSocket.new(io, context).tap do |socket|
      socket.sync_close = true
      socket.accept
    end
  end
end
