# frozen_string_literal: true

module Hikyaku
  module Log
    # The checksum of the journal: CRC-32C (Castagnoli), as in RFC 3720, appendix B.4.
    #
    # Short texts go through a table of 16 bits at a step. Long ones are folded first: as one large integer, whose shifts and
    # exclusive-ors run at the speed of memory, the front is multiplied by a power of x modulo the polynomial and laid over the
    # rest, which halves the text and leaves its checksum as it was.
    module CRC32C
      # Reflected: bit 31 is x^0.
      POLYNOMIAL = 0x82F63B78
      # Bytes from which folding is quicker than the table, and bits down to which it is.
      FOLDED_BYTES = 2048
      FOLD_LEAST = 6
      private_constant :POLYNOMIAL, :FOLDED_BYTES, :FOLD_LEAST

      class << self
        def of(bytes) = update(0, bytes)

        def update(crc, bytes) = compute(crc, bytes)

        # From now on the extension in C does the work, if it is there: `hikyaku/native` brings `CRC32C.native(crc, bytes)`.
        def use_native
          return false unless respond_to?(:native)
          singleton_class.alias_method(:update, :native)
          true
        end

        private

        def compute(crc, bytes)
          crc ^= 0xffffffff
          if bytes.bytesize >= FOLDED_BYTES
            bytes = fold(crc, bytes)
            crc = 0
          end
          step(crc, bytes) ^ 0xffffffff
        end

        def step(crc, bytes)
          low, high = tables
          bytes.unpack("L<*").each do |word|
            crc ^= word
            crc = high[crc & 0xffff] ^ low[crc >> 16]
          end
          rest = bytes.bytesize & 3
          bytes.byteslice(-rest, rest).each_byte { |byte| crc = low_byte(crc ^ byte) ^ (crc >> 8) } if rest > 0
          crc
        end

        # The checksum so far is the same as its bits laid over the first 32 of the text.
        def fold(crc, bytes)
          bits = bytes.bytesize * 8
          number = integer(bytes) ^ crc
          while (k = fold_for(bits)) >= FOLD_LEAST
            kept = kept_bits(k)
            front = bits - kept
            head = number & ((1 << front) - 1)
            number >>= front
            exponents(k).each { |exponent| number ^= head << (kept - front - exponent) }
            bits = kept
          end
          [format("%0*x", bits / 4, number)].pack("H*").reverse
        end

        # So many that what is kept is longer than the front and the product.
        def fold_for(bits) = ((bits + 63) / 64 - 2).bit_length - 1

        def kept_bits(k) = 64 * ((1 << k) + 1)

        # Little-endian, without a step for each byte: a large integer as Marshal writes it, whose digits are the text.
        def integer(bytes)
          bytes += "\0".b if bytes.bytesize.odd?
          Marshal.load("\x04\bl+".b << Marshal.dump(bytes.bytesize / 2).byteslice(3..) << bytes)
        end

        # Those that x to the power of kept_bits(k) has, modulo the polynomial.
        def exponents(k)
          @exponents ||= {}
          @exponents[k] ||= begin
            power = power_of_x(kept_bits(k))
            (0..31).select { |exponent| power[31 - exponent] == 1 }.freeze
          end
        end

        def power_of_x(exponent)
          result = 1 << 31
          square = 1 << 30
          while exponent > 0
            result = multiply(result, square) if exponent.odd?
            square = multiply(square, square)
            exponent >>= 1
          end
          result
        end

        def multiply(one, other)
          product = 0
          31.downto(0) do |bit|
            product ^= other if one[bit] == 1
            other = (other >> 1) ^ (other.odd? ? POLYNOMIAL : 0)
          end
          product
        end

        # Of 16 bits that stand in front of nothing, and in front of 16 more.
        def tables
          @tables ||= begin
            bytes = Array.new(256) { |value| shifted(value, 8) }
            low = Array.new(65_536) { |value| bytes[bytes[value & 0xff] & 0xff ^ (value >> 8)] ^ (bytes[value & 0xff] >> 8) }
            [low.freeze, Array.new(65_536) { |value| low[low[value] & 0xffff] ^ (low[value] >> 16) }.freeze].freeze
          end
        end

        def low_byte(value) = (@bytes ||= Array.new(256) { |byte| shifted(byte, 8) }.freeze)[value & 0xff]

        def shifted(value, times)
          times.times { value = (value >> 1) ^ (value.odd? ? POLYNOMIAL : 0) }
          value
        end
      end
    end
  end
end
