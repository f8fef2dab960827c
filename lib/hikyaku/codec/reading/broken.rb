# frozen_string_literal: true

require_relative "../../error"
require_relative "number"

module Hikyaku
  module Codec
    module Reading
      # Where a body stops being what it is said to be. The message is one sentence: the byte, and what was expected there.
      class Broken < StandardError
        include Error

        attr_reader :offset

        attr_reader :token

        def initialize(offset, what, token = nil)
          @offset = offset
          @token = token
          super("at byte #{Number.text(offset)}: #{what}")
        end
      end
    end
  end
end
