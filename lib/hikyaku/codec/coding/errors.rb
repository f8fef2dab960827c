# frozen_string_literal: true

require_relative "../errors"

module Hikyaku
  module Codec
    module Coding
      # There is no such content coding here. The message names it.
      class Unknown < ArgumentError
        include Error
      end

      # The coding has no such level of compression. The message names those that it has.
      class InvalidLevel < ArgumentError
        include Error
      end
    end
  end
end
