# frozen_string_literal: true

require_relative "format"
require_relative "message_pack/packer"
require_relative "message_pack/reader"

module Hikyaku
  module Codec
    # MessagePack, written by the gem msgpack with a factory of our own, and read by readers of our own, which believe nothing: one in C, as quick as the gem's,
    # and one in Ruby, which stands in where there is no C, and says what is wrong and where.
    #
    # The specification of MessagePack, https://github.com/msgpack/msgpack/blob/master/spec.md; the media type is registered with IANA.
    class MessagePack < Format
      NAMES = %w[application/vnd.msgpack application/msgpack application/x-msgpack application/x-mpac].freeze
      # Headers of arrays: of up to 15, and with 16 and 32 bits for the count.
      SMALL = 15
      MEDIUM = 0xffff
      LARGE = 0xffff_ffff
      UNPACKER = (Unpacker if Codec.const_defined?(:Unpacker, false))
      # What is given in place of a value.
      NONE = UNPACKER || BasicObject.new
      private_constant :NAMES, :SMALL, :MEDIUM, :LARGE, :UNPACKER, :NONE

      # @return [Boolean] whether the gem msgpack is there, and new enough
      def self.available? = Packer.available?

      # @api private
      def initialize = super(:msgpack, NAMES)

      # @param (see Format#dump)
      # @return (see Format#dump)
      # @raise (see Format#dump)
      def dump(object) = Packer.dump(object)

      # @api private
      # @return [Format]
      # @raise [Unavailable]
      def there!
        Packer.there!
        self
      end

      private

      def label = "MessagePack"

      def read(bytes, max_depth, max_items)
        bytes = bytes.b # nobody else's, while other threads run
        object = unpacked(bytes, max_depth, max_items)
        object.equal?(NONE) ? Reader.new(bytes, max_depth: max_depth, max_items: max_items).read : object
      end

      # By `hikyaku/native`, where it is there. There are no more items than bytes.
      def unpacked(bytes, max_depth, max_items)
        return NONE unless UNPACKER
        UNPACKER.unpack(bytes, max_depth, [max_items, bytes.bytesize].min) { |timestamp| Timestamp.time(timestamp) }
      end

      def frame(enumerable, count)
        count = enumerable.size if count.nil? && enumerable.respond_to?(:size)
        return Pieces::Frame.new(opening: header(count), separator: "", closing: "", count: count) if count.is_a?(Integer) && count.between?(0, LARGE)
        raise WrongCount, "MessagePack says first how many items an array has, and nobody can tell here: give each_piece the count (count: 1_000_000)"
      end

      def header(count)
        return [0x90 | count].pack("C") if count <= SMALL
        (count <= MEDIUM) ? [0xdc, count].pack("Cn") : [0xdd, count].pack("CN")
      end
    end
  end
end
