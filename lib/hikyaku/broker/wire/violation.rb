# frozen_string_literal: true

require_relative "../../error"

module Hikyaku
  module Broker
    module Wire
      # Bytes that are no frame, or one that may not come from this side: the connection is to end.
      class Violation < StandardError
        include Hikyaku::Error

        # @return [Integer] the code of the ERROR that says it ({Code})
        attr_reader :code
        # @return [Integer] the `id` of the frame; 0 where it has none
        attr_reader :id

        # @param code [Integer]
        # @param sentence [String]
        # @param id [Integer]
        def initialize(code, sentence, id: 0)
          super(sentence)
          @code = code
          @id = id
        end
      end
    end
  end
end
