# frozen_string_literal: true

require_relative "limits"
require_relative "pieces"

module Hikyaku
  module Codec
    # One way to write objects as bytes, and to read them back. See {JSON} and {MessagePack}, which are had by name: `Codec[:json]`.
    #
    # Both write the same of an object, what its `as_json` gives, but for what only one of them can say: MessagePack has moments (its timestamp
    # type, to the nanosecond), which are text in JSON, and bytes, which JSON refuses; integers beyond 64 bits are numbers in JSON and text in MessagePack.
    # A moment that an object's own `as_json` has made text of stays text.
    class Format
      # Bytes that are gathered before they are given on.
      BUFFER = 16_384
      private_constant :BUFFER

      # @return [Symbol] :json or :msgpack
      attr_reader :name

      # @return [String] what responses are labelled with
      attr_reader :media_type

      # @return [Array<String>] all that it goes by, in lower case
      attr_reader :media_types

      # @api private
      # @param name [Symbol]
      # @param media_types [Array<String>] its own first
      def initialize(name, media_types)
        @name = name
        @media_types = media_types.map(&:freeze).freeze
        @media_type = @media_types.first
        freeze
      end

      # @param object [Object] of what as_json knows; keys become text; at most 100 levels deep
      # @return [String] binary
      # @raise [Unrepresentable] something in it cannot be written; the message says what and where
      def dump(object) = raise(NotImplementedError)

      # Reads what a stranger may have sent. It gives nil, true, false, numbers, text, arrays, and hashes with text for keys; of MessagePack also Time
      # (in UTC) and binary Strings. Nothing is made of what a header only claims.
      #
      # @param bytes [String]
      # @param max_bytes [Integer]
      # @param max_depth [Integer] levels of arrays and objects; 500 at most
      # @param max_items [Integer] elements of arrays and entries of objects, all together
      # @return [Object]
      # @raise [Malformed] the bytes are not exactly one value of this format, or have a key twice in an object, a number that is none or out of
      #   range, text that is no UTF-8, a type that is not known; {TooLarge} beyond a limit
      def load(bytes, max_bytes: Limits::BYTES, max_depth: Limits::DEPTH, max_items: Limits::ITEMS)
        Limits.check(label, bytes, max_bytes: max_bytes, max_depth: max_depth, max_items: max_items)
        read(bytes, max_depth, max_items)
      end

      # Writes an array of any length, in pieces, with no more in memory than a piece and an item.
      #
      # MessagePack says first how many items there are. If neither `count` nor the enumerable's own `size` tells, it is refused here, before anything
      # is sent: counting would run through the source twice. If what was told is wrong, the pieces end with an exception, so that no client takes
      # for whole what is not.
      #
      # @param enumerable [#each] of objects as for {#dump}
      # @param buffer [Integer] about how many bytes a piece has; more where one item has more
      # @param count [Integer, nil] how many items there are; MessagePack needs it where the enumerable has no size
      # @yieldparam piece [String] binary
      # @return [Enumerator<String>, nil] of pieces, where no block is given
      # @raise [WrongCount]
      # @raise [Unrepresentable] an item cannot be written; what stands before it has been given
      def each_piece(enumerable, buffer: BUFFER, count: nil, &block)
        pieces = Pieces.new(self, enumerable, buffer: buffer, frame: frame(enumerable, count))
        return pieces.to_enum unless block
        pieces.each(&block)
        nil
      end

      # @api private
      # @return [Format] itself
      # @raise [Unavailable] its gem is not there
      def there! = self

      # @return [String]
      def inspect = "#<#{self.class.name} #{media_type}>"
    end
  end
end
