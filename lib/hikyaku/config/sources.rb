# frozen_string_literal: true

require_relative "../error"
require_relative "go_hub"
require_relative "issuer"
require_relative "settings"
require_relative "types"

module Hikyaku
  class Config
    # Where values come from, and which counts: flags, then the environment, then the file. Defaults are added by Config.
    module Sources
      # A setting's value with the place that it came from.
      class Given
        attr_reader :value, :origin, :rank

        def initialize(value, origin, rank)
          @value = value
          @origin = origin
          @rank = rank
          freeze
        end

        def inspect = "#<#{self.class.name} #{origin}>"
      end

      RANKS = {file: 1, environment: 2, flag: 3}.freeze
      # Set for other purposes than settings.
      OTHER_VARIABLES = %w[
        HIKYAKU_CONFIG HIKYAKU_TOKEN HIKYAKU_HUB HIKYAKU_DEBUG HIKYAKU_SIDECAR HIKYAKU_PARENT_PIPE HIKYAKU_BROKER_ADDRESS HIKYAKU_BROKER_TOKEN
        HIKYAKU_PROXY_USERS HIKYAKU_DOCTOR HIKYAKU_MESSAGE_ID HIKYAKU_QUEUE HIKYAKU_ATTEMPT HIKYAKU_FAILURES HIKYAKU_SANITIZE HIKYAKU_STRICT HIKYAKU_NO_SKIP
      ].freeze
      OURS = /\A(?:HIKYAKU|MERCURE)_/
      # What Kubernetes and Docker say of a service of that name, and what this project's tests are told.
      OF_OTHERS = /_SERVICE_(?:HOST|PORT(?:_\w+)?)\z|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?\z|\AHIKYAKU_TEST_/
      LINKS = %w[tcp:// udp:// sctp://].freeze
      private_constant :RANKS, :OTHER_VARIABLES, :OURS, :OF_OTHERS, :LINKS

      module_function

      def gather(flags: {}, env: {}, path: nil, &spelling)
        hub = GoHub.new(env)
        share_keys(from_file(path).merge(from_environment(env, hub), from_flags(flags, &spelling)), hub)
      end

      def from_code(settings)
        settings.compact.to_h do |name, value|
          setting = (Settings.find(name) if Settings.find(name)&.name == name) || unknown(name, Settings::ALL.map(&:name))
          [name, give(setting, value, name.to_s, :flag)]
        end
      end

      def from_flags(flags)
        flags.to_h do |name, value|
          setting = Settings[name]
          flag = block_given? ? yield(setting) : setting.flags.first
          [name, give(setting, value, "--#{"no-" if value == false}#{flag}", :flag)]
        end
      end

      # A variable that is set to nothing is as good as not set: container tools cannot take one away. What directives of the Go hub
      # say counts more than its other variables, and less than Hikyaku's.
      def from_environment(env, hub)
        directives = hub.settings.to_h { |name, (value, origin)| [name, give(Settings[name], value, origin, :environment)] }
        directives.merge(from_variables(env)) { |_, directive, variable| variable.origin.start_with?("MERCURE_") ? directive : variable }
      end

      def from_file(path)
        return {} unless path
        YamlFile.read(path).each_with_object({}) do |(key, (value, line)), found|
          setting = Settings.find(key) || unknown(key, Settings.keys, "#{path}:#{line}: ")
          next if value.nil?
          raise ConfigError, "#{path}:#{line}: #{key} and its other name are both given" if found.key?(setting.name)
          found[setting.name] = give(setting, value, "#{path}:#{line}: #{key}", :file)
        end
      end

      # Variables that look as if they were meant for the hub, and say nothing to it.
      def doubts(env)
        known = GoHub::VARIABLES + Settings::ALL.flat_map(&:variables)
        strange = env.keys.grep(OURS) - known - OTHER_VARIABLES - GoHub::OF_APPLICATIONS - [GoHub::LICENSE]
        strange.reject! { |name| blank?(env[name]) || name.match?(OF_OTHERS) || env[name].start_with?(*LINKS) }
        GoHub.new(env).doubts + strange.map { |name| "#{name} is not a setting#{did_you_mean(name, known)}" }
      end

      def from_variables(env)
        Settings::ALL.each_with_object({}) do |setting, found|
          variable = setting.variables.find { |name| !blank?(env[name]) } or next
          found[setting.name] = give(setting, setting.split(env[variable]), variable, :environment)
        end
      end
      private_class_method :from_variables

      def blank?(value) = value.to_s.scrub("?").strip.empty?
      private_class_method :blank?

      # Several issuers with the same keys: the first is `issuer`, the others stand beside it.
      def share_keys(given, hub)
        return given unless hub.issuers.size > 1 && given[:issuer].origin == hub.issuers_origin
        keys = (Issuer::NAMES - [:issuer]).to_h { |name| [name, given[name]&.value] }.compact
        others = hub.issuers.drop(1).map { |issuer| Issuer.cast({issuer: issuer, **keys}) }
        given.merge(issuers: Given.new([*given[:issuers]&.value, *others].freeze, hub.issuers_origin, RANKS[:environment]))
      rescue Type::Invalid => error
        raise ConfigError, "#{hub.issuers_origin}: #{error.message}"
      end
      private_class_method :share_keys

      # The same name with the other beginning is meant first.
      def did_you_mean(name, known)
        rest = name.sub(OURS, "")
        names = known.to_h { |variable| [variable.sub(OURS, ""), variable] }
        meant = names[rest] || names[Config.suggest(rest, names.keys)]
        meant ? "; did you mean #{meant}?" : ", and is not read"
      end
      private_class_method :did_you_mean

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

    # Reads a YAML file without making objects of it: every scalar is text, which the setting's own type reads. Aliases and
    # tags are refused, so that a file can neither grow in memory nor name a class.
    class YamlFile
      MAX_BYTES = 262_144
      # A list of mappings of scalars is the deepest that a setting takes.
      MAX_DEPTH = 3
      # The secret of development images starts so.
      QUOTE = "put a value that starts with ! in quotes"
      private_constant :MAX_BYTES, :MAX_DEPTH, :QUOTE

      def self.read(path) = new(path).entries

      def initialize(path)
        @path = path
      end

      def entries
        # Loaded here: most runs of the command line have no file.
        require "yaml"
        root = document
        return {} if root.nil? || blank?(root)

        fail_at(root, "expected settings as `name: value`") unless root.is_a?(Psych::Nodes::Mapping)
        refuse_tag(root, nil)
        pairs(root).to_h { |name, (key, node)| [name, [value(node, name), key.start_line + 1]] }
      end

      private

      def document
        documents = Psych.parse_stream(text, filename: @path).children
        fail_at(documents[1], "expected one YAML document") if documents.size > 1
        documents.first&.root
      rescue Psych::SyntaxError => error
        problem = [error.problem, error.context].compact.join(" ").tr("\n", " ")
        problem += "; #{QUOTE}" if problem.include?("tag")
        raise ConfigError, "#{@path}:#{error.line}: not YAML: #{problem}"
      end

      def text
        text = ::File.open(@path, "rb") { |file| file.read(MAX_BYTES + 1) || +"" }.force_encoding(Encoding::UTF_8)
        raise ConfigError, "#{@path}: larger than #{MAX_BYTES} bytes" if text.bytesize > MAX_BYTES
        raise ConfigError, "#{@path}: expected text in UTF-8" unless text.valid_encoding?
        text
      rescue SystemCallError => error
        raise ConfigError, "#{@path}: cannot be read: #{Config.reason(error)}"
      end

      def pairs(mapping)
        seen = {}
        mapping.children.each_slice(2) do |key, node|
          fail_at(key, "expected a setting's name") unless key.is_a?(Psych::Nodes::Scalar)
          fail_at(key, "#{key.value} is given twice") if seen.key?(key.value)
          seen[key.value] = [key, node]
        end
        seen
      end

      def value(node, key, depth = 1)
        refuse_tag(node, key)
        fail_at(node, "#{key}: nested too deeply") if depth > MAX_DEPTH
        case node
        when Psych::Nodes::Scalar then blank?(node) ? nil : node.value
        when Psych::Nodes::Sequence then node.children.map { |child| value(child, key, depth + 1) }
        when Psych::Nodes::Mapping then pairs(node).to_h { |name, (_, child)| [name, value(child, "#{key}: #{name}", depth + 1)] }
        else fail_at(node, "#{key}: aliases (*name) are not supported")
        end
      end

      def refuse_tag(node, key)
        return unless node.respond_to?(:tag) && node.tag && !node.tag.start_with?("tag:yaml.org,2002:")
        fail_at(node, "#{"#{key}: " if key}tags are not supported; #{QUOTE}")
      end

      def blank?(node) = node.is_a?(Psych::Nodes::Scalar) && node.plain && ["", "~", "null", "Null", "NULL"].include?(node.value)

      def fail_at(node, message) = raise(ConfigError, "#{@path}:#{node.start_line + 1}: #{message}")
    end
  end
end
