# frozen_string_literal: true

module Hikyaku
  module Broker
    # What an acknowledged message survives (docs/protocol.md, section 1).
    module Level
      # The memory of the broker.
      MEMORY = 0
      # The page cache of the kernel: it survives the death of the process.
      WRITTEN = 1
      # The disk: it survives a loss of power.
      SYNCED = 2
      # In a SEND: the broker chooses.
      DEFAULT = 255

      # Names in settings and output.
      NAMES = %i[memory written synced].freeze

      module_function

      def number(level)
        case level
        when nil, DEFAULT then DEFAULT
        when MEMORY..SYNCED then level
        else NAMES.index(level.to_s.to_sym) || raise(ArgumentError, "no level is called #{level.inspect}; there are #{NAMES.join(", ")}")
        end
      end
    end
  end
end
