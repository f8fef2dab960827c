# frozen_string_literal: true

require_relative "../../support/library"
require_relative "levels"

module Hikyaku
  module Codec
    module Coding
      # The coding br, with the gem brotli. Its compressors cannot be used again; each body has a new one.
      #
      # RFC 7932.
      class Brotli
        # What the gem does by itself, 11, is for files that are compressed once for all: it takes a hundred times as long.
        LEVEL = 4
        # Of a body in pieces: a window of 256 KiB, as long as the body is open.
        WINDOW_BITS = 18
        private_constant :LEVEL, :WINDOW_BITS

        # @return [String] as the field Content-Encoding has it
        attr_reader :name

        def initialize
          @name = "br"
          @library = Library.new("brotli") { ::Brotli.respond_to?(:deflate) && ::Brotli.const_defined?(:Compressor) }
          @levels = Levels.new(@name, 0..11, usual: LEVEL) {}
        end

        # @return [Boolean] whether it can be used here; where not, what is asked of it raises {Unavailable}
        def available? = @library.there?

        # @param bytes [String]
        # @param level [Integer, nil] 0, the quickest, to 11; nil: 4
        # @return [String] binary
        # @raise [InvalidLevel]
        # @raise [Unavailable]
        def compress(bytes, level: nil)
          there!
          ::Brotli.deflate(bytes, quality: @levels.check(level))
        end

        # @param level [Integer, nil] as in {#compress}
        # @return [Stream] for one body in pieces
        # @raise [InvalidLevel]
        # @raise [Unavailable]
        def stream(level: nil)
          there!
          Stream.new(::Brotli::Compressor.new(quality: @levels.check(level), lgwin: WINDOW_BITS))
        end

        private

        def there! = @library.there!(Unavailable, "the content coding br")

        # One body in pieces: each method gives the bytes that are to be sent next, which may be none.
        class Stream
          def initialize(compressor)
            @compressor = compressor
          end

          def <<(bytes) = @compressor.process(bytes)

          def flush = @compressor.flush

          def finish = @compressor.finish.tap { close }

          # Gives up what it holds. What was sent is no whole body then, unless it had been finished.
          def close
            @compressor = nil
          end
        end
      end
    end
  end
end
