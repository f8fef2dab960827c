# frozen_string_literal: true

require_relative "../../library"
require_relative "errors"
require_relative "zstandard/frames"

module Hikyaku
  module HTTP
    module ContentCoding
      # The coding zstd, with the gem zstd-ruby. It has no limit on the window, and does not tell where a frame ends: {Frames} does.
      #
      # RFC 8878; RFC 9659.
      #
      # @api private
      class Zstandard
        # In a version that can stop in between.
        LIBRARY = Library.new("zstd-ruby") { defined?(::Zstd::StreamingDecompress) && ::Zstd::StreamingDecompress.method_defined?(:decompress_with_pos) }
        # What the gem gives at once at most, which is as much as a block can be. After so much, there may be more.
        PIECE = 131_072
        private_constant :PIECE

        # @return [Boolean] whether its gem is there
        def self.available? = LIBRARY.there?

        # @param decompressor [#decompress_with_pos]
        def initialize(decompressor = ::Zstd::StreamingDecompress.new)
          @decompressor = decompressor
          @frames = Frames.new
        end

        # @param bytes [String]
        # @yieldparam decoded [String]
        # @raise [Corrupt]
        def decode(bytes)
          bytes = @frames.take(bytes)
          out = ""
          until bytes.empty? && out.bytesize < PIECE
            out, taken = decompress(bytes)
            raise Corrupt, "what came is not as its coding says: it does not go on" if out.empty? && taken.zero? && !bytes.empty?
            yield out unless out.empty?
            bytes = bytes.byteslice(taken, bytes.bytesize)
          end
        end

        # @return [Boolean] whether it may end here
        def complete? = @frames.complete?

        # @return [Boolean] never: what is no frame is corrupt
        def mislabelled? = false

        private

        def decompress(bytes)
          @decompressor.decompress_with_pos(bytes)
        rescue => error # the gem's are plain RuntimeErrors
          raise Corrupt, "what came is not as its coding says: #{error.message}"
        end
      end
    end
  end
end
