# frozen_string_literal: true

require_relative "../../config"
require_relative "hub_settings"

module Hikyaku
  class Server
    class Sidecar
      # What puma.rb says of the hub, put together with the environment (HIKYAKU_*) and the file config/hikyaku.yml. What puma.rb
      # says counts most, the file least.
      class Settings
        FILE = "config/hikyaku.yml"
        # Where the hub listens is for Puma to say.
        DECIDED = %i[listen handover].freeze
        private_constant :FILE, :DECIDED

        def initialize(**given)
          @given = given
        end

        def empty? = @given.empty?

        def plan(env: ENV, url: nil)
          decided = (DECIDED & @given.keys).first
          raise ConfigError, "#{decided}: the hub beside Puma is reached through Puma, and listens nowhere else" if decided
          config = Config.build(sources(env), serving: true, doubts: Config::Sources.doubts(env))
          config = config.with(resource_identifier: "#{url}#{config.path}") if url && !config.given?(:resource_identifier)
          HubSettings.of(config)
        end

        def inspect = "#<#{[self.class.name, *@given.keys].join(" ")}>"
        alias_method :to_s, :inspect

        private

        def sources(env)
          Config::Sources.gather(env: env, path: file(env)).merge(Config::Sources.from_code({listen: HubSettings::LISTEN}.merge(@given)))
        end

        def file(env)
          given = env["HIKYAKU_CONFIG"].to_s
          return given unless given.empty?
          FILE if File.exist?(FILE)
        end
      end
    end
  end
end
