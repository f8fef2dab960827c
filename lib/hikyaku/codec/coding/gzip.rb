# frozen_string_literal: true

require "zlib"
require_relative "levels"

module Hikyaku
  module Codec
    module Coding
      # The coding gzip. Its members name no file and no time, so that the same bytes always become the same bytes.
      #
      # RFC 9110, section 8.4.1.3; RFC 1952.
      class Gzip
        WITH_HEAD = Zlib::MAX_WBITS + 16
        # Half the time of zlib's own choice, which is 6, for a twelfth more bytes.
        LEVEL = 4
        private_constant :WITH_HEAD, :LEVEL

        # @return [String] as the field Content-Encoding has it
        attr_reader :name

        def initialize
          @name = "gzip"
          @levels = Levels.new(@name, 1..9, usual: LEVEL) { |level| Zlib::Deflate.new(level, WITH_HEAD) }
        end

        # @return [Boolean] whether it can be used here; where not, what is asked of it raises {Unavailable}
        def available? = true

        # @param bytes [String]
        # @param level [Integer, nil] 1, the quickest, to 9; nil: 4
        # @return [String] binary
        # @raise [InvalidLevel]
        def compress(bytes, level: nil)
          stream = stream(level: level)
          stream.whole(bytes)
        ensure
          stream&.close
        end

        # @param level [Integer, nil] as in {#compress}
        # @return [Stream] for one body in pieces
        # @raise [InvalidLevel]
        def stream(level: nil) = Stream.new(@levels.contexts(level))

        # One body in pieces: each method gives the bytes that are to be sent next, which may be none.
        class Stream
          def initialize(contexts)
            @contexts = contexts
            @deflate = contexts.take
            @pending = false
          end

          def <<(bytes)
            @pending = true unless bytes.empty?
            @deflate.deflate(bytes)
          end

          def flush
            return "".b unless @pending
            @pending = false
            @deflate.flush(Zlib::SYNC_FLUSH)
          end

          def finish = @deflate.finish.tap { release }

          def whole(bytes) = @deflate.deflate(bytes, Zlib::FINISH).tap { release }

          # Gives up what it holds. What was sent is no whole body then, unless it had been finished.
          def close
            deflate, @deflate = @deflate, nil
            discard(deflate) if deflate
          end

          private

          def release
            deflate, @deflate = @deflate, nil
            deflate.reset
            discard(deflate) unless @contexts.give(deflate)
          end

          # Not used again: a reset leaves what an interrupted call had made. Without a reset zlib would warn.
          def discard(deflate)
            deflate.reset
            deflate.close
          end
        end
      end
    end
  end
end
