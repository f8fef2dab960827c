# frozen_string_literal: true

require "json"
require "openssl"
require "socket"
require_relative "event_stream"

# An HTTP/1.1 client that also sends what a well-behaved one would not. Every wait has a deadline.
class HttpClient
  # The server did not answer in time.
  class TooLate < StandardError
  end

  PATIENCE = 180

  def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  Response = Struct.new(:status, :headers, :body, keyword_init: true) do
    # @param name [String] in lower case
    # @return [String, nil] fields of one name joined, as HTTP has it
    def [](name) = headers.filter_map { |key, value| value if key == name }.then { |values| values.join(", ") unless values.empty? }

    def json = JSON.parse(body)
  end

  # One connection: bytes out, a response in.
  class Connection
    def initialize(io)
      @io = io
      @buffer = +"".b
    end

    # Whoever refuses a request may close before it has read all of it.
    def write(bytes)
      @io.write(bytes)
    rescue Errno::EPIPE, Errno::ECONNRESET
      nil
    end

    # @return [Response] without a body
    def head(deadline)
      fill(deadline) or raise EOFError, "no response, but the end of the connection" until @buffer.include?("\r\n\r\n")
      lines = @buffer.slice!(0, @buffer.index("\r\n\r\n") + 4).split("\r\n")
      status = lines.first[%r{\AHTTP/1\.[01] (\d{3})}, 1] or raise "not HTTP/1: #{lines.inspect}"
      lines.shift
      headers = lines.map { |line| line.split(/:[ \t]*/, 2).then { |name, value| [name.downcase, value.dup.force_encoding(Encoding::UTF_8)] } }
      response = Response.new(status: status.to_i, headers: headers)
      @chunked = response["transfer-encoding"].to_s.downcase == "chunked"
      response
    end

    # @return [String] the whole body
    def body(response, method, deadline)
      return "" if method == "HEAD" || [204, 304].include?(response.status)
      length = response["content-length"]&.to_i
      body = +"".b
      while length.nil? || body.bytesize < length
        part = body_part(deadline, length && length - body.bytesize) or break
        body << part
      end
      body.force_encoding(Encoding::UTF_8)
    end

    # @param most [Integer, nil] what comes behind so many bytes is the next response
    # @return [String, nil] bytes of the body as they come; nil at its end
    def body_part(deadline, most = nil)
      return chunk(deadline) if @chunked
      return unless !@buffer.empty? || fill(deadline)
      @buffer.slice!(0, most || @buffer.bytesize)
    end

    def close = @io.close

    private

    def chunk(deadline)
      fill(deadline) or return until @buffer.include?("\r\n")
      size = @buffer.slice!(0, @buffer.index("\r\n") + 2).to_i(16)
      fill(deadline) or return while @buffer.bytesize < size + 2
      part = @buffer.slice!(0, size)
      @buffer.slice!(0, 2)
      part unless size.zero?
    end

    # @return [String, nil] nil at the end
    def fill(deadline)
      loop do
        case (bytes = @io.read_nonblock(65_536, exception: false))
        when :wait_readable, :wait_writable
          wait = deadline - HttpClient.now
          raise TooLate, "nothing came in time; before it: #{@buffer.inspect[0, 200]}" unless wait > 0 && @io.to_io.wait_readable(wait)
        when nil then return
        else return @buffer << bytes
        end
      end
    rescue Errno::ECONNRESET, OpenSSL::SSL::SSLError
      nil
    end
  end

  # @param port [Integer]
  # @param host [String]
  # @param tls [Boolean]
  # @param unix [String, nil] path of a socket
  def initialize(port = nil, host: "127.0.0.1", tls: false, unix: nil)
    @port = port
    @host = host
    @tls = tls
    @unix = unix
  end

  # @param target [String] path and query as they go into the request line
  # @param headers [Hash{String => String, Array<String>}]
  # @return [Response]
  def request(method, target, headers: {}, body: nil, version: "1.1")
    head = {"host" => "hub.example.com", "connection" => "close"}
    head["content-length"] = body.bytesize.to_s if body && !headers.key?("transfer-encoding")
    raw(message(method, target, head.merge(headers), body, version), method: method)
  end

  # @param bytes [String] a request, or something like one
  # @return [Response]
  def raw(bytes, method: "GET", seconds: PATIENCE)
    connection = connect
    connection.write(bytes)
    deadline = HttpClient.now + seconds
    response = connection.head(deadline)
    response.body = connection.body(response, method, deadline)
    response
  ensure
    connection&.close
  end

  # @return [EventStream] for a 200; else the response, read whole
  def stream(method, target, headers: {}, body: nil)
    head = {"host" => "hub.example.com", "accept" => "text/event-stream"}
    head["content-length"] = body.bytesize.to_s if body
    connection = connect
    connection.write(message(method, target, head.merge(headers), body, "1.1"))
    deadline = HttpClient.now + PATIENCE
    response = connection.head(deadline)
    return EventStream.new(connection, response) if response.status == 200
    response.body = connection.body(response, method, deadline)
    connection.close
    response
  end

  def connect
    socket = @unix ? UNIXSocket.new(@unix) : TCPSocket.new(@host, @port)
    if @tls
      context = OpenSSL::SSL::SSLContext.new
      context.verify_mode = OpenSSL::SSL::VERIFY_NONE
      socket = OpenSSL::SSL::SSLSocket.new(socket, context).tap { |ssl| ssl.sync_close = true }.connect
    end
    Connection.new(socket)
  end

  private

  def message(method, target, headers, body, version)
    lines = headers.flat_map { |name, values| Array(values).map { |value| "#{name}: ".b << value.b << "\r\n" } }
    "#{method} ".b << target.b << " HTTP/#{version}\r\n" << lines.join << "\r\n" << body.to_s.b
  end
end
