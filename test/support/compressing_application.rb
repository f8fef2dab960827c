# frozen_string_literal: true

require "brotli"
require "rack/lint"
require "rack/mock_request"
require "zlib"
require "zstd-ruby"
require "hikyaku/codec/rack/compression"

# An application behind Hikyaku::Codec::Rack::Compression, with Rack::Lint on both sides of it, and what a client gets of it.
class CompressingApplication
  UNDONE = {"gzip" => Zlib.method(:gunzip), "br" => Brotli.method(:inflate), "zstd" => Zstd.method(:decompress)}.freeze

  Answer = Struct.new(:status, :headers, :pieces, keyword_init: true) do
    # @return [String, nil] a header field
    def [](name) = headers[name]

    # @return [String] as it was sent
    def bytes = pieces.join

    # @return [String] without its coding
    def text
      undone = self["content-encoding"] ? UNDONE.fetch(self["content-encoding"]).call(bytes) : bytes
      undone.dup.force_encoding(Encoding::UTF_8)
    end
  end

  # A body that counts.
  class Body
    attr_reader :closed, :asked

    # @param pieces [Array<String, Proc>]
    def initialize(*pieces)
      @pieces = pieces
      @closed = @asked = 0
    end

    def each
      @asked += 1
      @pieces.each { |piece| yield piece.respond_to?(:call) ? piece.call : piece }
    end

    def close
      @closed += 1
    end
  end

  # @return [Hikyaku::Codec::Rack::Compression]
  attr_reader :middleware

  # @param options [Hash] of the middleware
  # @param inside [Array<Class>] what stands between it and the application
  # @param lint [Boolean]
  # @yieldparam env [Hash]
  # @yieldreturn [Array] the response
  def initialize(inside: [], lint: true, **options, &application)
    application = Rack::Lint.new(application) if lint
    application = inside.reverse.reduce(application) { |app, middleware| middleware.new(app) }
    @application = @middleware = Hikyaku::Codec::Rack::Compression.new(application, **options)
    @application = Rack::Lint.new(@application) if lint
  end

  # @param accept [String, nil] the field Accept-Encoding
  # @param fields [Hash{String => String}] others, as they stand in a request
  # @return [Answer]
  def get(accept = "gzip", method: "GET", path: "/", **fields)
    status, headers, body = call(accept, method: method, path: path, **fields)
    pieces = []
    body.each { |piece| pieces << piece }
    Answer.new(status: status, headers: headers, pieces: pieces)
  ensure
    body.close if body.respond_to?(:close)
  end

  # @return [Array] the response as a server gets it
  def call(accept = "gzip", method: "GET", path: "/", **fields)
    env = Rack::MockRequest.env_for(path, method: method)
    env["HTTP_ACCEPT_ENCODING"] = accept if accept
    fields.each { |name, value| env["HTTP_#{name.to_s.upcase.tr("-", "_")}"] = value }
    @application.call(env)
  end
end
