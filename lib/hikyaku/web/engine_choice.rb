# frozen_string_literal: true

require_relative "../hub"

module Hikyaku
  class Web
    # What a developer gets who has no engine in C, and has not asked for it: the one in Ruby, and a warning. Anybody else is told, and decides.
    module EngineChoice
      module_function

      def settle(config, logger: nil, lenient: config.dev)
        return config unless config.engine == "c"
        require_relative "../hub/native_engine"
        config
      rescue NativeUnavailable => error
        raise if !lenient || config.given?(:engine) || config.handover
        warning = "the engine in Ruby serves, which is slower: #{error.message}"
        logger ? logger.warn(warning) : warn("hikyaku: #{warning}")
        config.with(engine: "ruby")
      end
    end
  end
end
