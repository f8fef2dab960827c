# frozen_string_literal: true

require_relative "../errors"

module Hikyaku
  module HTTP
    module ContentCoding
      class Zstandard
        # Follows the frames of zstd without decoding them: how large a window they ask for, and where the last one ends.
        #
        #     magic ─┬─► descriptor ──► header ──► block ──► block … ──► (checksum) ──► magic
        #            ├─► length ──► magic                                    a frame to be skipped
        #            └─► garbage                                             after a frame; else it is corrupt
        #
        # RFC 8878, section 3.1.
        class Frames
          MAGIC = 0xFD2FB528
          SKIPPABLE = (0x184D2A50..0x184D2A5F)
          # RFC 9659, section 3: nobody has to understand more.
          MOST_WINDOW = 8_388_608 # bytes
          DICTIONARY_BYTES = [0, 1, 2, 4].freeze
          # By the flag of the frame's content size.
          SIZE_BYTES = [0, 2, 4, 8].freeze
          SINGLE_SEGMENT = 0x20
          RESERVED = 0x08
          CHECKSUM = 0x04
          MAGIC_BYTES = LENGTH_BYTES = CHECKSUM_BYTES = 4
          BLOCK_BYTES = 3
          REPEATED = 1 # a block of one byte
          NO_BLOCK = 3
          private_constant :MAGIC, :SKIPPABLE, :MOST_WINDOW, :DICTIONARY_BYTES, :SIZE_BYTES, :SINGLE_SEGMENT, :RESERVED, :CHECKSUM, :MAGIC_BYTES, :LENGTH_BYTES,
            :CHECKSUM_BYTES, :BLOCK_BYTES, :REPEATED, :NO_BLOCK

          def initialize
            @held = String.new(encoding: Encoding::BINARY)
            @skip = 0
            @any = false
            expect(:magic, MAGIC_BYTES)
          end

          def take(bytes)
            out = String.new(encoding: Encoding::BINARY)
            at = 0
            while at < bytes.bytesize && @state != :garbage
              at += @skip.positive? ? data(bytes, at, out) : head(bytes, at, out)
            end
            out
          end

          def complete? = @any && @skip.zero? && (@state == :magic || @state == :garbage)

          private

          def expect(state, bytes)
            @state = state
            @needed = bytes
          end

          def data(bytes, at, out)
            part = bytes.byteslice(at, @skip)
            @skip -= part.bytesize
            out << part
            part.bytesize
          end

          def head(bytes, at, out)
            part = bytes.byteslice(at, @needed - @held.bytesize)
            @held << part
            if @held.bytesize == @needed
              send(@state, @held)
              out << @held unless @state == :garbage
              @held.clear
            end
            part.bytesize
          end

          def magic(bytes)
            case bytes.unpack1("V")
            when MAGIC then expect(:descriptor, 1)
            when SKIPPABLE then expect(:length, LENGTH_BYTES)
            else
              raise Corrupt, "what came is not as its coding says: it does not begin as zstd" unless @any
              @state = :garbage
            end
          end

          def length(bytes)
            @skip = bytes.unpack1("V")
            ended
          end

          def descriptor(bytes)
            flags = bytes.getbyte(0)
            raise Corrupt, "what came is not as its coding says: a frame of zstd has a reserved flag" if flags.anybits?(RESERVED)
            @single = flags.anybits?(SINGLE_SEGMENT)
            @checked = flags.anybits?(CHECKSUM)
            @dictionary = DICTIONARY_BYTES[flags & 3]
            size = SIZE_BYTES[flags >> 6]
            size = 1 if size.zero? && @single
            expect(:header, (@single ? 0 : 1) + @dictionary + size)
          end

          def header(bytes)
            needed = @single ? number(bytes.byteslice(@dictionary, 8)) : window(bytes.getbyte(0))
            raise Corrupt, "what came needs a window of #{needed} bytes; the coding zstd may ask for #{MOST_WINDOW} (RFC 9659)" if needed > MOST_WINDOW
            expect(:block, BLOCK_BYTES)
          end

          # Section 3.1.1.1.2.
          def window(byte)
            base = 1 << (10 + (byte >> 3))
            base + base / 8 * (byte & 7)
          end

          # Little-endian. Sizes of two bytes count from 256, which makes no difference here.
          def number(bytes) = bytes.bytes.reverse.inject(0) { |sum, byte| (sum << 8) | byte }

          def block(bytes)
            bits = number(bytes)
            type = (bits >> 1) & 3
            raise Corrupt, "what came is not as its coding says: a block of zstd has a type that there is not" if type == NO_BLOCK
            @skip = (type == REPEATED) ? 1 : bits >> 3
            return if bits.even?
            @checked ? expect(:checksum, CHECKSUM_BYTES) : ended
          end

          def checksum(_bytes) = ended

          def ended
            @any = true
            expect(:magic, MAGIC_BYTES)
          end
        end
      end
    end
  end
end
