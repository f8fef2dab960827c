# frozen_string_literal: true

require_relative "inflation"

module Hikyaku
  module HTTP
    module ContentCoding
      # The coding deflate, which is zlib's format; many servers send bare deflate instead, and browsers take both.
      #
      # RFC 9110, section 8.4.1.2; RFC 1950, section 2.2.
      class Deflate
        HEAD_BYTES = 2
        private_constant :HEAD_BYTES

        def self.available? = true

        def initialize
          @held = String.new(encoding: Encoding::BINARY)
          @inflation = nil
        end

        def step(bytes)
          return [Inflation::EMPTY, nil] if complete?
          step, rest = Inflation.cut(bytes)
          [take(step), rest]
        end

        def complete? = !@inflation.nil? && @inflation.finished?

        def mislabelled? = false

        private

        def take(step)
          unless @inflation
            step = @held << step
            return Inflation::EMPTY if step.bytesize < HEAD_BYTES
            @inflation = Inflation.new(wrapped?(step) ? Zlib::MAX_WBITS : -Zlib::MAX_WBITS)
          end
          @inflation.decode(step).first
        end

        # The method is 8, the window at most 32 KiB, and the two bytes are a multiple of 31.
        def wrapped?(bytes)
          method, flags = bytes.getbyte(0), bytes.getbyte(1)
          (method & 0x0F) == 8 && (method >> 4) <= 7 && ((method << 8) | flags) % 31 == 0
        end
      end
    end
  end
end
