# frozen_string_literal: true

require_relative "../../server"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # The hub as a process of its own that listens where `config.hikyaku.hub` says, with the application's keys and
    # settings: `bin/rails hikyaku:hub`.
    class Standalone
      def initialize(settings)
        @settings = settings
      end

      def run
        logger = Server::Log.new($stderr, level: config.log_level, format: config.log_format)
        Server.new(Web::EngineChoice.settle(config, logger: logger, lenient: ::Rails.env.local?), logger: logger).run
      end

      def config
        @config ||= @settings.config.with(**address, cors_origins: cors_origins)
      end

      private

      def address
        hub = @settings.hub or raise ConfigError, "config.hikyaku.hub is not set: the server process holds the hub itself"
        case hub
        when %r{\Aunix:(?://)?([^:]+)(?::(/.*))?\z} then {listen: "unix:#{$1}", path: $2}.compact
        when %r{\Ahttp://(\[[^\]]+\]|[^/:?#]+)(?::(\d+))?(/[^?#]*)?\z} then {listen: "#{$1}:#{$2 || 80}", path: $3}.compact
        else raise ConfigError, "config.hikyaku.hub is #{hub}: a hub of this application listens at http://HOST:PORT/PATH or unix:PATH"
        end
      end

      # On a developer's machine the pages come from another port.
      def cors_origins
        given = @settings.config.cors_origins
        (given.empty? && ::Rails.env.local?) ? ["http://localhost:#{ENV.fetch("PORT", 3000)}"] : given
      end
    end
  end
end
