# frozen_string_literal: true

require "digest"
require "json"
require_relative "../../config"
require_relative "../../version"

module Hikyaku
  class Server
    class Sidecar
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

        attr_reader :settings
        attr_reader :about
        attr_reader :doubts

        def initialize(parts)
          @settings, @about, @doubts = parts.values_at("settings", "about", "doubts")
          freeze
        end

        def digest = Digest::SHA256.hexdigest(JSON.generate([VERSION, settings]))

        def to_json(*) = JSON.generate("settings" => settings, "about" => about, "doubts" => doubts)

        def inspect = "#<#{self.class.name} #{about["hub_url"]}>"
      end
    end
  end
end
