# frozen_string_literal: true

require_relative "../../support/library"
require_relative "errors"
require_relative "zstandard/frames"

module Hikyaku
  module HTTP
    module ContentCoding
      # The coding zstd, with the gem zstd-ruby. It has no limit on the window, and does not tell where a frame ends: {Frames} does.
      #
      # RFC 8878; RFC 9659.
      class Zstandard
        # In a version that can stop in between.
        LIBRARY = Library.new("zstd-ruby") { defined?(::Zstd::StreamingDecompress) && ::Zstd::StreamingDecompress.method_defined?(:decompress_with_pos) }
        # What the gem gives at once at most, which is as much as a block can be. After so much, there may be more.
        PIECE = 131_072
        private_constant :PIECE

        def self.available? = LIBRARY.there?

        def initialize(decompressor = ::Zstd::StreamingDecompress.new)
          @decompressor = decompressor
          @frames = Frames.new
          @rest = String.new(encoding: Encoding::BINARY)
          @full = false
        end

        def step(bytes)
          @rest << @frames.take(bytes)
          return ["", nil] unless more?
          out, taken = decompress(@rest)
          raise Corrupt, "what came is not as its coding says: it does not go on" if out.empty? && taken.zero? && !@rest.empty?
          @rest = @rest.byteslice(taken, @rest.bytesize)
          @full = out.bytesize >= PIECE
          [out, more? ? "" : nil]
        end

        def complete? = @frames.complete?

        def mislabelled? = false

        private

        def more? = @full || !@rest.empty?

        def decompress(bytes)
          @decompressor.decompress_with_pos(bytes)
        rescue => error # the gem's are plain RuntimeErrors
          raise Corrupt, "what came is not as its coding says: #{error.message}"
        end
      end
    end
  end
end
