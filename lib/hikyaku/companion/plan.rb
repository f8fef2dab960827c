# frozen_string_literal: true

require "digest"
require "json"
require_relative "../config"
require_relative "../version"

module Hikyaku
  class Companion
    # What hub there is to be, as plain values that can be told to another process.
    class Plan
      # Where it listens is not for settings to say; that it is a Unix socket counts for what may be set beside.
      LISTEN = "unix:hub.sock"
      DECIDED = %i[listen handover].freeze
      # Of Config, for those who talk to the hub.
      ABOUT = %i[path resource_identifier hub_url max_request_bytes].freeze
      private_constant :DECIDED, :ABOUT

      class << self
        # @param config [Config]
        # @param doubts [Array<String>] sentences for the log, beside the configuration's own
        # @return [Plan]
        # @raise [ConfigError] the settings do not fit together
        def of(config, doubts: [])
          config = config.with(listen: LISTEN)
          new("settings" => settings(config), "about" => about(config), "doubts" => doubts_of(config) + doubts)
        end

        # @param config [Config]
        # @return [Hash{String => Object}] what those must know who talk to its hub
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

      # @return [Hash{String => Object}] of Config, as a file would have them
      attr_reader :settings
      # @return [Hash{String => Object}] what those must know who talk to the hub
      attr_reader :about
      # @return [Array<String>] sentences for the log
      attr_reader :doubts

      # @param parts [Hash{String => Object}]
      def initialize(parts)
        @settings, @about, @doubts = parts.values_at("settings", "about", "doubts")
        freeze
      end

      # @return [String] the same for the same hub: another one must take the place of one that has another
      def digest = Digest::SHA256.hexdigest(JSON.generate([VERSION, settings]))

      # @return [String]
      def to_json(*) = JSON.generate("settings" => settings, "about" => about, "doubts" => doubts)

      # @return [String] without the settings
      def inspect = "#<#{self.class.name} #{about["hub_url"]}>"
    end
  end
end
