# frozen_string_literal: true

require "socket"
require "uri"

# The HTTP libraries of the benchmark: each fetches one path (`each`), or many as the library does that best (`batch`).
module Libraries
  # Net::HTTP, on one connection, or `connections=N`.
  class NetHttp
    attr_reader :connections

    def initialize(uri, options)
      require "net/http"
      @uri = uri
      @most = Integer(options.fetch("connections", "1"))
      @http = open
      @connections = 1
    end

    def each(path) = @http.get(path).body

    def batch(paths)
      bodies = Array.new(paths.size)
      left = Queue.new
      paths.each_index { |number| left << number }
      left.close
      fetch = lambda do |http|
        while (number = left.pop)
          bodies[number] = http.get(paths[number]).body
        end
      end
      others = Array.new([@most, paths.size].min - 1) { Thread.new { open.tap(&fetch).finish } }
      @connections += others.size
      fetch.call(@http)
      others.each(&:join)
      bodies
    end

    def close = @http.finish

    private

    def open = Net::HTTP.new(@uri.host, @uri.port, nil).start
  end

  # Excon, a pipeline on one connection.
  class Excon
    def initialize(uri, _options)
      require "excon"
      @connection = ::Excon.new("http://#{uri.host}:#{uri.port}", persistent: true)
    end

    def connections = 1

    def each(path) = @connection.get(path: path, expects: 200).body

    def batch(paths) = @connection.requests(paths.map { |path| {method: :get, path: path, expects: 200} }).map(&:body)

    def close = @connection.reset
  end

  # httpx over HTTP/1.1 with persistent connections: it pipelines.
  class Httpx
    def initialize(uri, _options)
      require "set" # httpx expects it to be loaded, as Ruby 3.2 and later do
      require "httpx"
      @origin = "http://#{uri.host}:#{uri.port}"
      @session = HTTPX.plugin(:persistent)
    end

    def connections = nil

    def each(path) = batch([path]).first

    def batch(paths) = [@session.get(*paths.map { |path| "#{@origin}#{path}" })].flatten(1).map { |response| response.raise_for_status.body.to_s }

    def close = @session.close
  end

  # Hikyaku's client. `memory=FILE`: what it remembers of origins; without it, it knows none.
  class Hikyaku
    def initialize(uri, options)
      $LOAD_PATH.unshift(File.expand_path("../../../lib", __dir__))
      require "hikyaku/http/client"
      @origin = "http://#{uri.host}:#{uri.port}"
      @client = ::Hikyaku::HTTP::Client.new(memory: options["memory"], **((options["cache"] == "no") ? {cache: false} : {}))
    end

    def connections = nil

    def each(path) = @client.get("#{@origin}#{path}").body

    def batch(paths) = @client.get(paths.map { |path| "#{@origin}#{path}" }).map { |outcome| outcome.error ? raise(outcome.error) : outcome.body }

    def close = @client.close # writes the memory
  end

  # A bare pipeline on one connection, with request heads of `head=BYTES` and at most `unanswered=N` requests without a response (0: all
  # are written at once; 1: one after another).
  class Raw
    PAD = "X:"

    def initialize(uri, options)
      @host = "#{uri.host}:#{uri.port}"
      @head = Integer(options.fetch("head", "60"))
      @most = Integer(options.fetch("unanswered", "0"))
      @socket = TCPSocket.new(uri.host, uri.port)
      @socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
    end

    def connections = 1

    def each(path) = batch([path]).first

    def batch(paths)
      # A thread writes: client and server would wait for each other if both only wrote.
      if @most.zero?
        writing = Thread.new { write(paths) }
        return paths.map { read }.tap { writing.join }
      end
      waiting = paths.dup
      write(waiting.shift(@most))
      paths.map { read.tap { write(waiting.shift(1)) } }
    end

    def close = @socket.close

    private

    def write(paths)
      @socket.write(paths.map { |path| request(path) }.join) unless paths.empty?
    end

    # Of exactly so many bytes, if that is enough.
    def request(path)
      text = "GET #{path} HTTP/1.1\r\nHost: #{@host}\r\n"
      left = @head - text.bytesize - 2
      text << PAD << "x" * (left - PAD.bytesize - 2) << "\r\n" if left >= PAD.bytesize + 2
      text << "\r\n"
    end

    def read
      head = @socket.gets("\r\n\r\n") or abort("raw: the server has closed the connection")
      abort("raw: #{head.lines.first}") unless head.start_with?("HTTP/1.1 200 ")
      @socket.read(Integer(head[/^content-length: (\d+)/i, 1]))
    end
  end

  ALL = {"net-http" => NetHttp, "excon" => Excon, "httpx" => Httpx, "hikyaku" => Hikyaku, "raw" => Raw}.freeze

  def self.open(name, uri, options) = ALL.fetch(name).new(uri, options)
end
