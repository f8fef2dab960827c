# frozen_string_literal: true

require_relative "../../error"
require_relative "../../hub/idempotency"
require_relative "../../client/publisher/errors"
require_relative "rows"

module Hikyaku
  class Outbox
    # What a failed publish says about its row.
    module Verdict
      # The hub has looked at the update, and would say the same again.
      REFUSED = [400, 413, 414, 415, 422, 431].freeze
      INVALID = [InvalidTopic, InvalidUpdate, LimitExceeded, KeyReused, Rows::Unreadable].freeze
      private_constant :REFUSED, :INVALID

      module_function

      def hopeless?(error)
        case error
        when *INVALID then true
        when Publisher::Refused then REFUSED.include?(error.status)
        else false
        end
      end

      def away?(error)
        case error
        when Publisher::Unreachable, ConfigError then true
        else defined?(NoHub) ? error.is_a?(NoHub) : false
        end
      end
    end
  end
end
