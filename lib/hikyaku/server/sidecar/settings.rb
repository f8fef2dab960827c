# frozen_string_literal: true

require "digest"
require "json"
require "uri"
require_relative "../../config"
require_relative "../../version"

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

      # What hub there is to be, as plain values that can be told to another process.
      class HubSettings
        # Where it listens is not for settings to say; that it is a Unix socket counts for what may be set beside.
        LISTEN = "unix:hub.sock"
        DECIDED = %i[listen handover].freeze
        # Of Config, for those who talk to the hub.
        ABOUT = %i[path resource_identifier hub_url max_request_bytes].freeze
        private_constant :DECIDED, :ABOUT

        class << self
          def of(config, doubts: [])
            config = config.with(listen: LISTEN)
            new("settings" => settings(config), "about" => about(config), "doubts" => doubts_of(config) + doubts)
          end

          def about(config) = ABOUT.to_h { |name| [name.to_s, config.public_send(name)] }

          private

          # Whatever was set, so that what was not keeps its default.
          def settings(config)
            names = Config::Settings::ALL.map(&:name).select { |name| config.given?(name) } - DECIDED
            names.to_h { |name| [name.to_s, plain(Config::Settings[name], config.public_send(name))] }
          end

          def plain(setting, value)
            return value.map(&:to_h) if setting.name == :issuers
            return value.map { |each| setting.type.write(each) } if setting.list?
            setting.switch? ? value : setting.type.write(value)
          end

          # The workers publish, whoever else may.
          def doubts_of(config) = (config.publisher_key ? config : config.with(publisher_key: "of the workers")).doubts
        end

        attr_reader :settings, :about, :doubts

        def initialize(parts)
          @settings, @about, @doubts = parts.values_at("settings", "about", "doubts")
          freeze
        end

        def digest = Digest::SHA256.hexdigest(JSON.generate([VERSION, settings]))

        def to_json(*) = JSON.generate("settings" => settings, "about" => about, "doubts" => doubts)

        def inspect = "#<#{self.class.name} #{about["hub_url"]}>"
      end

      # Under which URL a server is reached on its own machine.
      module ServerURL
        LOCAL = %w[0.0.0.0 127.0.0.1 [::] [::1] localhost].freeze
        SCHEMES = {"tcp" => "http", "ssl" => "https"}.freeze
        private_constant :LOCAL, :SCHEMES

        module_function

        def of(binds)
          bind = Array(binds).map { |text| URI.parse(text) }.find { |uri| SCHEMES.key?(uri.scheme) && uri.port.to_i > 0 } or return
          "#{SCHEMES[bind.scheme]}://#{LOCAL.include?(bind.host) ? "localhost" : bind.host}:#{bind.port}"
        rescue URI::Error
          nil
        end
      end
    end
  end
end
