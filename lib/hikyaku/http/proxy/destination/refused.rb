# frozen_string_literal: true

require_relative "../../../error"

module Hikyaku
  module HTTP
    class Proxy
      class Destination
        # A host or port that the proxy does not reach. The message says which, and why.
        class Refused < StandardError
          include Error

          attr_reader :reason

          def initialize(reason, message)
            @reason = reason
            super(message)
          end
        end
      end
    end
  end
end
