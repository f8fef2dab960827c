# frozen_string_literal: true

module Hikyaku
  module Broker
    module Wire
      # The properties of a message, as bytes (docs/protocol.md, section 4).
      module Properties
        module_function

        def pack(pairs)
          bytes = pairs.each_with_object("".b) do |(name, value), packed|
            name = name.to_s
            raise ArgumentError, "the name of a property has 1 to 255 bytes: #{name.inspect}" unless name.bytesize.between?(1, 255)
            raise ArgumentError, "the property #{name} is longer than 65,535 bytes" if value.bytesize > 65_535
            packed << [name.bytesize, name, value.bytesize, value].pack("Ca*va*")
          end
          raise ArgumentError, "the properties of a message have 65,535 bytes at most together" if bytes.bytesize > 65_535
          bytes
        end

        def parse(bytes)
          raise ArgumentError, "the properties are not well-formed" unless well_formed?(bytes)
          pairs = {}
          at = 0
          while at < bytes.bytesize
            name = bytes.byteslice(at + 1, bytes.getbyte(at))
            at += 1 + name.bytesize
            size = bytes.getbyte(at) | bytes.getbyte(at + 1) << 8
            pairs[name.force_encoding(Encoding::UTF_8)] = bytes.byteslice(at + 2, size)
            at += 2 + size
          end
          pairs
        end

        # @return [Boolean] pairs with a name each fill the bytes exactly
        def well_formed?(bytes, size = bytes.bytesize)
          at = 0
          while at < size
            name = bytes.getbyte(at)
            return false if name.zero? || at + 3 + name > size
            at += 1 + name
            at += 2 + (bytes.getbyte(at) | bytes.getbyte(at + 1) << 8)
          end
          at == size
        end
      end
    end
  end
end
