# frozen_string_literal: true

require_relative "../../codec"

module Hikyaku
  module Codec
    module Rack
      # The body of a response with as many items as you like: each is taken when the client can have it, encoded and forgotten.
      #
      #     [200, {"content-type" => format.media_type}, Hikyaku::Codec::Rack::Body.new(format, Item.find_each)]
      #
      # When an item cannot be made or encoded, what was sent by then is no whole array, and the server cuts the connection: the client sees that something
      # is missing.
      class Body
        # @param format [Format]
        # @param items [Enumerable] each is asked for once
        # @param count [Integer, nil] how many there are; MessagePack has to say so first, and needs it where the items do not know their own `size`
        # @yieldparam item [Object]
        # @yieldreturn [Object] what is sent in place of the item
        # @raise [WrongCount] nobody says how many there are
        def initialize(format, items, count: nil, &made)
          @pieces = format.each_piece(made ? items.lazy.map(&made) : items, count: count)
        end

        # @yieldparam bytes [String] binary
        # @return [void]
        # @raise [WrongCount] there are others than were announced
        # @raise [Unrepresentable]
        def each(&block)
          @pieces.each(&block)
        end
      end
    end
  end
end
