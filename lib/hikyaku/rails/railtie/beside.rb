# frozen_string_literal: true

require_relative "../../server/sidecar/settings"
require_relative "../../web/engine_choice"
require_relative "spoken_warning"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # What the application says of its hub when `plugin :hikyaku` of Puma runs that beside the workers.
    module Beside
      module_function

      # Answers Server::Sidecar::Application, which asks another process for the plan, and ends this one.
      def tell(io, error = nil, url: nil)
        io.write(answer(error, url))
        io.close
        # The endings of the application are for processes that have served.
        exit!(0)
      end

      # The hub that this process holds already ends.
      def step_aside = Railtie.mount.give_way

      def plan(settings = Railtie.mount.settings, url: nil)
        if settings.remote?
          raise ConfigError, "config.hikyaku.hub is set, so the hub is elsewhere: take that away, or `plugin :hikyaku` from config/puma.rb"
        end
        settings.serve_at(url) if url
        config = Web::EngineChoice.settle(settings.config, logger: SpokenWarning, lenient: ::Rails.env.local?)
        Server::Sidecar::HubSettings.of(config, doubts: [settings.doubt].compact)
      end

      def answer(error, url)
        raise error if error
        plan(url: url).to_json
      rescue Error => refusal
        # What the application itself was doing when it did not start is told with its place.
        raise if refusal.equal?(error) && !refusal.is_a?(ConfigError)
        JSON.generate("error" => refusal.message)
      end
      private_class_method :answer
    end
  end
end
