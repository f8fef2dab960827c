# frozen_string_literal: true

require_relative "../../error"

module Hikyaku
  module Broker
    module Wire
      # Bytes that are no frame, or one that may not come from this side: the connection is to end.
      class Violation < StandardError
        include Hikyaku::Error

        attr_reader :code
        attr_reader :id

        def initialize(code, sentence, id: 0)
          super(sentence)
          @code = code
          @id = id
        end
      end
    end
  end
end
