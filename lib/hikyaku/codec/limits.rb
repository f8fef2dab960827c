# frozen_string_literal: true

require_relative "errors"

module Hikyaku
  module Codec
    # How much is read of what a stranger sends, and how deep what is written may be.
    module Limits
      BYTES = 8 * 1_024 * 1_024
      # Arrays and objects in one another: what parsers of JSON take where nobody has said anything else.
      DEPTH = 100
      # Elements of arrays and entries of objects, all together.
      ITEMS = 250_000
      # Reading uses the stack.
      MOST_DEPTH = 500
      private_constant :MOST_DEPTH

      class << self
        def check(name, bytes, max_bytes:, max_depth:, max_items:)
          raise ArgumentError, "max_depth must be 1 to #{MOST_DEPTH}" unless max_depth.is_a?(Integer) && max_depth.between?(1, MOST_DEPTH)
          raise ArgumentError, "max_items must be a whole number from 0" unless max_items.is_a?(Integer) && !max_items.negative?
          raise TooLarge, "#{name}: #{bytes.bytesize} bytes are more than the #{max_bytes} that are read" if bytes.bytesize > max_bytes
        end
      end
    end
  end
end
