# frozen_string_literal: true

require_relative "../../error"

module Hikyaku
  module HTTP
    module ContentCoding
      # A coding that is not known here, or too many of them. The message names it.
      class Unsupported < StandardError
        include Error
      end

      # What came is not what its coding says, or ended too early.
      class Corrupt < StandardError
        include Error
      end

      # More bytes than are wanted came out. The message names the limit.
      class TooLarge < StandardError
        include Error
      end
    end
  end
end
