# frozen_string_literal: true

require "active_support/logger"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # A warning, said once: in the log and, where that goes to a file, on standard error. Whoever starts a server would not see it else:
    # `rails server` shows its log only from when the application is loaded.
    module SpokenWarning
      @said = {}

      class << self
        # In place of a logger.
        def warn(warning)
          return if @said[warning]
          @said[warning] = true
          text = "Hikyaku: #{warning}"
          ::Rails.logger&.warn(text)
          super(text) unless ActiveSupport::Logger.logger_outputs_to?(::Rails.logger, $stderr, $stdout)
        end
      end
    end
  end
end
