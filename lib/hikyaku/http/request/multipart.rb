# frozen_string_literal: true

require "securerandom"
require "stringio"
require_relative "../part"
require_relative "form"
require_relative "pipe"
require_relative "size"

module Hikyaku
  module HTTP
    class Request
      # A form with files, as bytes that are read once, part after part: multipart/form-data. RFC 7578, and the HTML Standard for how names are written.
      class Multipart
        ESCAPES = {"\"" => "%22", "\r" => "%0D", "\n" => "%0A"}.freeze
        LINE_END = /\r\n|\r|\n/n
        private_constant :ESCAPES, :LINE_END

        attr_reader :size

        def initialize(pairs)
          @boundary = "----hikyaku#{SecureRandom.hex(16)}"
          @pieces = []
          @text = "".b
          pairs.each { |name, value| add(name, Form.file?(value) ? value : Part.new(Form.text(value, name))) }
          @text << "--#{@boundary}--\r\n"
          @body = @text if @pieces.empty?
          flush
          sizes = @pieces.map { |piece| Size.left(piece) }
          @size = sizes.sum unless sizes.include?(nil)
        end

        def content_type = "multipart/form-data; boundary=#{@boundary}"

        def body = @body || self

        def to_io = Pipe.of(@pieces.first)

        def read_nonblock(count, **)
          while (piece = @pieces.first)
            bytes = Pipe.of(piece) ? piece.read_nonblock(count, exception: false) : piece.read(count)
            return bytes unless bytes.nil? || bytes.empty?
            @pieces.shift
          end
        end
        alias_method :read, :read_nonblock

        private

        def add(name, value)
          part = value.is_a?(Part) ? value : Part.of(value)
          @text << "--#{@boundary}\r\nContent-Disposition: form-data; name=\"" << escape(Form.text(name, name).gsub(LINE_END, "\r\n")) << "\""
          @text << "; filename=\"" << escape(utf8(part.filename)) << "\"" if part.filename
          @text << "\r\nContent-Type: " << part.content_type.b if part.content_type
          @text << "\r\n\r\n"
          append(part.content)
          @text << "\r\n"
        end

        def append(content)
          return @text << content.b if content.is_a?(String)
          flush
          @pieces << content
        end

        def flush
          @pieces << StringIO.new(@text)
          @text = "".b
        end

        # Whatever encoding a name has on the disk: bytes that are not text go as they are.
        def utf8(name)
          return name.b unless name.valid_encoding? && name.encoding != Encoding::BINARY
          name.encode(Encoding::UTF_8).b
        rescue EncodingError
          name.b
        end

        def escape(text) = text.gsub(/["\r\n]/n, ESCAPES)
      end
    end
  end
end
