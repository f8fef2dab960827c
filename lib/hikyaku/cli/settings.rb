# frozen_string_literal: true

require_relative "../config"

module Hikyaku
  module CLI
    # For commands that read the hub's configuration: adds the settings as options, and puts a Config together.
    module Settings
      # What a client needs to find the hub and to sign for it.
      CLIENT = %i[dev listen path issuer publisher_key subscriber_key alg publisher_alg subscriber_alg resource_identifier].freeze

      private

      def settings(parser, list)
        @flags = {}
        list.group_by(&:group).each do |group, members|
          parser.separator("\n#{group}:")
          members.each { |setting| setting(parser, setting) if setting.flag? }
        end
      end

      def configuration(parser)
        parser.separator("\nConfiguration (flags count more than variables, those more than the file):")
        value_option(parser, "--config FILE", "YAML file whose keys are the flags' names in snake case (HIKYAKU_CONFIG)") { |path| @file = path }
      end

      def client_settings(parser)
        settings(parser, CLIENT.map { |name| Config::Settings[name] })
      end

      def config(serving: false)
        @config ||= Config.load(flags: @flags, env: env, file: @file, serving: serving) { |setting| flag(setting) }
      end

      def flag(setting) = setting.flags.first

      def setting(parser, setting)
        if setting.switch?
          parser.on("--[no-]#{flag(setting)}", *wrap(describe(setting))) { |value| @flags[setting.name] = value }
        else
          value_option(parser, "--#{flag(setting)} #{setting.type.placeholder}", describe(setting)) { |value| take(setting, value) }
        end
      end

      def take(setting, value)
        setting.list? ? (@flags[setting.name] ||= []) << value : @flags[setting.name] = value
      end

      def describe(setting)
        return "#{setting.help}; may be repeated" if setting.list?
        return setting.help if setting.default_text == "none" || setting.switch?
        "#{setting.help} (#{setting.default_text})"
      end
    end
  end
end
