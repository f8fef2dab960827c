# frozen_string_literal: true

require_relative "../../support/library"
require_relative "levels"

module Hikyaku
  module Codec
    module Coding
      # The coding zstd, with the gem zstd-ruby.
      #
      # RFC 8878; RFC 9659.
      class Zstandard
        LEVEL = 3
        # With more, a window may be larger than the 8 MiB that a client has to understand (RFC 9659, section 3).
        LEVELS = 1..19
        private_constant :LEVEL, :LEVELS

        # @return [String] as the field Content-Encoding has it
        attr_reader :name

        def initialize
          @name = "zstd"
          @library = Library.new("zstd-ruby") { ::Zstd.const_defined?(:StreamingCompress) }
          @levels = Levels.new(@name, LEVELS, usual: LEVEL) { |level| ::Zstd::StreamingCompress.new(level: level) }
        end

        # @return [Boolean] whether it can be used here; where not, what is asked of it raises {Unavailable}
        def available? = @library.there?

        # @param bytes [String]
        # @param level [Integer, nil] 1, the quickest, to 19; nil: 3
        # @return [String] binary
        # @raise [InvalidLevel]
        # @raise [Unavailable]
        def compress(bytes, level: nil)
          there!
          contexts = @levels.contexts(level)
          compressor = contexts.take
          out = compressor.compress(bytes) << compressor.finish
          contexts.give(compressor)
          out
        end

        # @param level [Integer, nil] as in {#compress}
        # @return [Stream] for one body in pieces
        # @raise [InvalidLevel]
        # @raise [Unavailable]
        def stream(level: nil)
          there!
          Stream.new(@levels.contexts(level))
        end

        private

        def there! = @library.there!(Unavailable, "the content coding zstd")

        # One body in pieces: each method gives the bytes that are to be sent next, which may be none.
        class Stream
          def initialize(contexts)
            @contexts = contexts
            @compressor = contexts.take
          end

          def <<(bytes) = @compressor.compress(bytes)

          def flush = @compressor.flush

          def finish
            out = @compressor.finish
            @contexts.give(@compressor)
            close
            out
          end

          # Gives up what it holds. What was sent is no whole body then, unless it had been finished.
          def close
            @compressor = nil
          end
        end
      end
    end
  end
end
