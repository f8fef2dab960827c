# frozen_string_literal: true

require "zlib"

# Reads what streams in other formats say, independently of what writes them: bytes as they come, in pieces of any length.
module FormatReaders
  # Of a stream that is not compressed.
  class Identity
    attr_reader :text

    def initialize = @text = +"".b

    def <<(bytes)
      @text << bytes
      self
    end
  end

  # Of a gzip stream. `text` grows with each piece, or raises where the bytes cannot be decoded.
  class Gzip
    # @return [String] what was decoded
    attr_reader :text

    def initialize
      @inflate = Zlib::Inflate.new(16 + Zlib::MAX_WBITS)
      @text = +"".b
    end

    def <<(bytes)
      @text << @inflate.inflate(bytes)
      self
    end

    # @return [Boolean] the stream ended in order: checksum and length were right
    def finished? = @inflate.finished?
  end

  # Of values back to back: nil, true, integers that are not negative, strings of UTF-8, and arrays of them.
  class Pack
    # The value has not come to its end yet.
    Unfinished = Class.new(StandardError)

    # @return [Array] what has come whole
    attr_reader :values

    def initialize
      @buffer = +"".b
      @values = []
    end

    def <<(bytes)
      @buffer << bytes
      loop do
        @at = 0
        @values << read
        @buffer.slice!(0, @at)
      end
    rescue Unfinished
      self
    end

    # @return [String] the bytes of the value that has not come to its end
    def rest = @buffer

    # @return [Boolean] nothing is left of the next
    def whole? = @buffer.empty?

    # @return [Array<Array>] [id, type, data]
    def events = @values.grep(Array)

    private

    def read
      case (byte = take(1).ord)
      when 0x00..0x7F then byte
      when 0x90..0x9F then Array.new(byte & 15) { read }
      when 0xA0..0xBF then string(byte & 31)
      when 0xC0 then nil
      when 0xC3 then true
      when 0xCC, 0xD9 then sized(byte, take(1).unpack1("C"))
      when 0xCD, 0xDA then sized(byte, take(2).unpack1("n"))
      when 0xCE, 0xDB then sized(byte, take(4).unpack1("N"))
      when 0xCF then take(8).unpack1("Q>")
      else raise "0x#{byte.to_s(16)} has no place in a stream of events"
      end
    end

    def sized(byte, number) = (byte >= 0xD9) ? string(number) : number

    def string(size)
      take(size).force_encoding(Encoding::UTF_8).tap { |text| raise "no UTF-8: #{text.inspect}" unless text.valid_encoding? }
    end

    def take(size)
      raise Unfinished if @buffer.bytesize - @at < size
      @buffer.byteslice(@at, size).tap { @at += size }
    end
  end
end
