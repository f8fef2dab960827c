# frozen_string_literal: true

module Hikyaku
  module Broker
    module Wire
      # The codes of ERROR (docs/protocol.md, section 5).
      module Code
        MALFORMED = 1
        UNEXPECTED = 2
        VERSION = 3
        UNAUTHORIZED = 4
        FORBIDDEN = 5
        FENCED = 6
        TOO_BIG = 7
        INVALID = 8
        NO_SUCH_QUEUE = 9
        NO_SUCH_MESSAGE = 10
        NO_SUCH_SUBSCRIPTION = 11
        STALE = 12
        LEVEL = 13
        SEQUENCE = 14
        QUEUE_FULL = 15
        OVERLOADED = 16
        DISK_FULL = 17
        DRAINING = 18
        FAILED = 19
        IDLE = 20
        LIMIT = 21

        NAMES = constants(false).to_h { |name| [const_get(name), name] }.freeze

        LATER = [QUEUE_FULL, OVERLOADED, DISK_FULL, DRAINING, IDLE, LIMIT].freeze
        private_constant :LATER

        module_function

        def name_of(code) = NAMES.fetch(code, code)

        def later?(code) = LATER.include?(code)
      end
    end
  end
end
