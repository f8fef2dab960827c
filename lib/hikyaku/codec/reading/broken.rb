# frozen_string_literal: true

require_relative "../../error"
require_relative "number"

module Hikyaku
  module Codec
    module Reading
      # Where a body stops being what it is said to be. The message is one sentence: the byte, and what was expected there.
      class Broken < StandardError
        include Error

        # @return [Integer] of the first byte that is wrong or missing, counted from 0
        attr_reader :offset

        # @return [Token, nil] as much as there is of a text that breaks off
        attr_reader :token

        # @param offset [Integer]
        # @param what [String] what was expected, and what there is
        # @param token [Token, nil]
        def initialize(offset, what, token = nil)
          @offset = offset
          @token = token
          super("at byte #{Number.text(offset)}: #{what}")
        end
      end
    end
  end
end
