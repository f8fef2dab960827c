# frozen_string_literal: true

require_relative "../error"
require_relative "settings"
require_relative "type"

module Hikyaku
  class Config
    # Where values come from, and which counts: flags, then the environment, then the file. Defaults are added by Config.
    module Sources
      # A setting's value with the place that it came from.
      class Given
        # @return [Object] in its final form
        attr_reader :value
        # @return [String] for messages: `--listen`, `HIKYAKU_LISTEN`, `hub.yml:3: listen`, `listen`
        attr_reader :origin
        # @return [Integer] which counts more
        attr_reader :rank

        def initialize(value, origin, rank)
          @value = value
          @origin = origin
          @rank = rank
          freeze
        end

        # @return [String] without the value, which may be a secret
        def inspect = "#<#{self.class.name} #{origin}>"
      end

      RANKS = {file: 1, environment: 2, flag: 3}.freeze
      # Set for other purposes than settings.
      OTHER_VARIABLES = %w[HIKYAKU_CONFIG HIKYAKU_TOKEN HIKYAKU_HUB HIKYAKU_DEBUG HIKYAKU_COMPANION HIKYAKU_BROKER_ADDRESS].freeze
      # Variables of the Go hub's image that say something which is not taken over.
      IGNORED_VARIABLES = %w[MERCURE_EXTRA_DIRECTIVES MERCURE_TRUSTED_ISSUERS].freeze
      private_constant :RANKS, :OTHER_VARIABLES, :IGNORED_VARIABLES

      module_function

      # @param flags [Hash{Symbol => Object}] by the setting's name; a list for a list
      # @param env [Hash{String => String}]
      # @param path [String, nil] of the file
      # @return [Hash{Symbol => Given}]
      # @raise [ConfigError]
      def gather(flags: {}, env: {}, path: nil, &spelling)
        from_file(path).merge(from_environment(env), from_flags(flags, &spelling))
      end

      # @param settings [Hash{Symbol => Object}] Ruby values; nil stands for the default
      # @return [Hash{Symbol => Given}]
      # @raise [ConfigError]
      def from_code(settings)
        settings.compact.to_h do |name, value|
          setting = (Settings.find(name) if Settings.find(name)&.name == name) || unknown(name, Settings::ALL.map(&:name))
          [name, give(setting, value, name.to_s, :flag)]
        end
      end

      # @yield [setting] how the command writes the setting's flag, without the dashes; as the table does unless told
      # @return [Hash{Symbol => Given}]
      def from_flags(flags)
        flags.to_h do |name, value|
          setting = Settings[name]
          flag = block_given? ? yield(setting) : setting.flags.first
          [name, give(setting, value, "--#{"no-" if value == false}#{flag}", :flag)]
        end
      end

      # A variable that is set to nothing is as good as not set: container tools cannot take one away.
      # @return [Hash{Symbol => Given}]
      def from_environment(env)
        Settings::ALL.each_with_object({}) do |setting, found|
          variable = setting.variables.find { |name| !env[name].to_s.strip.empty? } or next
          found[setting.name] = give(setting, setting.split(env[variable]), variable, :environment)
        end
      end

      # @return [Hash{Symbol => Given}]
      def from_file(path)
        return {} unless path
        YamlFile.read(path).each_with_object({}) do |(key, (value, line)), found|
          setting = Settings.find(key) || unknown(key, Settings.keys, "#{path}:#{line}: ")
          next if value.nil?
          raise ConfigError, "#{path}:#{line}: #{key} and its other name are both given" if found.key?(setting.name)
          found[setting.name] = give(setting, value, "#{path}:#{line}: #{key}", :file)
        end
      end

      # Variables that look as if something else had been meant.
      # @return [Array<String>] sentences
      def doubts(env)
        known = Settings::ALL.flat_map(&:variables)
        strange = (env.keys.grep(/\AHIKYAKU_/) - known - OTHER_VARIABLES).filter_map do |name|
          close = Config.suggest(name.delete_prefix("HIKYAKU_"), known.map { |variable| variable.delete_prefix("HIKYAKU_") })
          "#{name} is not a setting; did you mean HIKYAKU_#{close}?" if close
        end
        ignored = IGNORED_VARIABLES & env.keys
        strange + ignored.map { |name| "#{name} is not read; say what it says with settings of Hikyaku" }
      end

      def give(setting, value, origin, source)
        Given.new(setting.cast(value), origin, RANKS.fetch(source))
      rescue Type::Invalid => error
        raise ConfigError, "#{origin}: #{error.message}#{got(setting, value)}"
      end
      private_class_method :give

      # Secrets are never repeated, and long values are cut.
      def got(setting, value)
        return if setting.secret? || setting.name == :issuers || !(value.is_a?(String) || value.is_a?(Numeric))
        text = value.is_a?(String) ? value.dup.force_encoding(Encoding::UTF_8).scrub("?") : value.to_s
        ", got #{((text.size > 60) ? "#{text[0, 60]}…" : text).inspect}"
      end
      private_class_method :got

      def unknown(name, known, place = "")
        close = Config.suggest(name.to_s, known.map(&:to_s))
        raise ConfigError, "#{place}unknown setting #{name}#{"; did you mean #{close}?" if close}"
      end
      private_class_method :unknown
    end
  end
end
