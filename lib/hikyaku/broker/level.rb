# frozen_string_literal: true

module Hikyaku
  module Broker
    # What an acknowledged message survives (docs/protocol.md, section 1).
    module Level
      # The broker has it.
      MEMORY = 0
      # The kernel has it: it survives the death of the process.
      WRITTEN = 1
      # The disk has it: it survives a loss of power.
      SYNCED = 2
      # In a SEND: the broker chooses.
      USUAL = 255

      # Words for people and settings.
      NAMES = %i[memory written synced].freeze

      module_function

      def number(level)
        case level
        when nil, USUAL then USUAL
        when MEMORY..SYNCED then level
        else NAMES.index(level.to_s.to_sym) || raise(ArgumentError, "no level is called #{level.inspect}; there are #{NAMES.join(", ")}")
        end
      end
    end
  end
end
