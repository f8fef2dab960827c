# frozen_string_literal: true

require_relative "../../../error"

module Hikyaku
  module HTTP
    class Proxy
      module Forwarding
        # A message that is not passed on. The message of the error says why.
        class Refused < StandardError
          include Error

          attr_reader :status

          def initialize(status, text)
            @status = status
            super("the message is not passed on: #{text}")
          end
        end
      end
    end
  end
end
