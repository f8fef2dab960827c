# frozen_string_literal: true

require_relative "../../../error"

module Hikyaku
  module HTTP
    class Proxy
      class Destination
        # A host or port that the proxy does not reach. The message says which, and why.
        class Refused < StandardError
          include Error

          # @return [Symbol] :port, :no_port, :own, :unresolved, :malformed, :loopback, :unspecified, :link_local, :metadata, :multicast, :broadcast or :reserved
          attr_reader :reason

          # @param reason [Symbol]
          # @param message [String]
          def initialize(reason, message)
            @reason = reason
            super(message)
          end
        end
      end
    end
  end
end
