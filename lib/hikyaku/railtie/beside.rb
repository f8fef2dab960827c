# frozen_string_literal: true

require_relative "../companion/plan"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # What the application says of its hub when `plugin :hikyaku` of Puma runs that beside the workers.
    #
    # @api private
    module Beside
      module_function

      # Answers Companion::Application, which asks another process for the plan, and ends this one.
      #
      # @param io [IO]
      # @param error [StandardError, nil] with which the application did not start
      # @return [void]
      def tell(io, error = nil)
        io.write(answer(error))
        io.close
        # The endings of the application are for processes that have served.
        exit!(0)
      end

      # @param settings [Settings]
      # @return [Companion::Plan]
      # @raise [ConfigError]
      def plan(settings = Railtie.mount.settings)
        if settings.remote?
          raise ConfigError, "config.hikyaku.hub is set, so the hub is elsewhere: take that away, or `plugin :hikyaku` from config/puma.rb"
        end
        Companion::Plan.of(settings.config, doubts: [settings.doubt].compact)
      end

      def answer(error)
        raise error if error
        plan.to_json
      rescue ConfigError => error
        JSON.generate("error" => error.message)
      end
      private_class_method :answer
    end
  end
end
