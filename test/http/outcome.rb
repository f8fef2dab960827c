# frozen_string_literal: true

require "hikyaku/http"

# What parsing some bytes comes to, as text: the same as of test/engine/http1_outcome.h.
class Outcome
  KINDS = {none: "none", length: "length", chunked: "chunked", until_close: "until-close"}.freeze

  # @param kind [Symbol] :request or :response
  # @param bytes [String]
  # @param method [String] of the requests that responses answer
  # @param first [Integer] how many bytes arrive at first; 0 is all
  # @param step [Integer] how many then arrive each time; 0 is all
  # @param limits [Hash{Symbol => Integer}] as the engine calls them, `head_bytes: 100`
  # @param native [Boolean] whether heads of responses are read in C
  # @return [String]
  def self.of(kind, bytes, method: "GET", first: 0, step: 0, limits: {}, native: false)
    new(kind, method, limits, native).of(pieces(bytes.b, first, step))
  end

  def self.pieces(bytes, first, step)
    first = bytes.bytesize if first.zero?
    rest = bytes.byteslice(first, bytes.bytesize) || ""
    step = [rest.bytesize, 1].max if step.zero?
    [bytes.byteslice(0, first), *(0...rest.bytesize).step(step).map { |at| rest.byteslice(at, step) }]
  end

  def self.line(word, bytes)
    return word if bytes.empty?
    "#{word} " + bytes.b.gsub(/[^\x20-\x7E]|\\|\A | \z/n) { |byte| format("\\x%02X", byte.ord) }
  end

  def initialize(kind, method, limits, native)
    @parser = Hikyaku::HTTP::Parser.new(kind, native: native, **limits.transform_keys { |name| :"max_#{name}" })
    @parser.request_method = method
    @lines = []
    @data = +"".b
  end

  def of(pieces)
    pieces.each do |piece|
      @parser << piece
      take
    end
    @parser.close
    take
    data
    @lines << (@raw ? line("raw", @parser.rest) : "idle")
    text
  rescue Hikyaku::HTTP::Parser::Malformed => error
    data
    @lines << "error #{error.reason} #{error.status}"
    text
  end

  private

  def text = @lines.map { |line| "#{line}\n" }.join

  def take
    while (part = @parser.next)
      case part
      when String then @data << part
      when :end
        data
        @lines << "end"
      else head(part)
      end
    end
  end

  def data
    @lines << line("data", @data) unless @data.empty?
    @data.clear
  end

  def head(head)
    head.is_a?(Hikyaku::HTTP::Parser::Request) ? request(head) : response(head)
    head.headers.each { |name, value| @lines << line("header #{name}:", value) }
    @lines << "body #{[KINDS.fetch(head.framing), head.content_length].compact.join(" ")}"
  end

  def request(head)
    @raw = head.method == "CONNECT"
    @lines << "request #{head.form} 1.#{head.minor}" << line("method", head.method) << line("target", head.target) << line("path", head.path)
    @lines << line("query", head.query) if head.query
    @lines << line("authority", head.authority)
    @lines << "keep-alive" if head.keep_alive?
    @lines << "expect-continue" if head.expect_continue?
    @lines << "upgrade" if head.upgrade?
  end

  def response(head)
    @raw = head.upgrade?
    @lines << "response #{head.status} 1.#{head.minor}" << line("reason", head.reason)
    @lines << "interim" if head.interim?
    @lines << "keep-alive" if head.keep_alive?
    @lines << "upgrade" if head.upgrade?
  end

  def line(word, bytes) = self.class.line(word, bytes)
end
