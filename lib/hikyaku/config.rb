# frozen_string_literal: true

require_relative "error"
require_relative "config/types"
require_relative "config/issuer"
require_relative "config/rules"
require_relative "config/settings"
require_relative "config/sources"
require_relative "config/suggestion"

module Hikyaku
  # The settings of a hub: immutable, validated, with documented defaults (docs/configuration.md).
  #
  #     Hikyaku::Config.new(publisher_key: secret, subscriber_key: secret, anonymous: true)
  #     Hikyaku::Config.load(flags: {listen: ":8080"}, env: ENV, file: "hub.yml")
  #
  # Every setting has a reader of its name; switches have one with a question mark too.
  class Config
    # Of a request, beside its topics or matchers.
    OTHER_FIELDS = 15_000
    private_constant :OTHER_FIELDS

    Settings::ALL.each do |setting|
      next if setting.name == :resource_identifier # derived, see below
      define_method(setting.name) { @values.fetch(setting.name) }
      alias_method :"#{setting.name}?", setting.name if setting.switch?
    end

    class << self
      # Puts settings together: flags count more than the environment, that more than the file, that more than defaults.
      #
      # @param flags [Hash{Symbol => Object}] by the setting's name
      # @param env [Hash{String => String}] HIKYAKU_* and, after them, those of the Go hub's image
      # @param file [String, nil] path of a YAML file; HIKYAKU_CONFIG names it otherwise
      # @param serving [Boolean, Symbol] false for a client: nobody need be able to connect; :broker for a broker without a hub
      # @yield [setting] how a flag was written, without the dashes; as the table has it unless told
      # @return [Config]
      # @raise [ConfigError] one line: the setting, where it came from, what is expected
      def load(flags: {}, env: {}, file: nil, serving: true, &spelling)
        file ||= env["HIKYAKU_CONFIG"] unless env["HIKYAKU_CONFIG"].to_s.empty?
        build(Sources.gather(flags: flags, env: env, path: file, &spelling), serving: serving, doubts: Sources.doubts(env), spelling: spelling)
      end

      # @api private
      # @return [String, nil] the word that was probably meant
      def suggest(word, known) = Suggestion.for(word, known)

      # @api private
      # @return [String] an operating system's error in words
      def reason(error) = error.class.new.message.sub(/\A[A-Z]/) { |letter| letter.downcase }

      # @api private
      def build(given, **options)
        config = allocate
        config.send(:settle, given, **options)
        config
      end
    end

    # @param settings [Hash{Symbol => Object}] by name; nil stands for the default; texts are read as from a flag
    # @raise [ConfigError]
    def initialize(**settings)
      settle(Sources.from_code(settings))
    end

    # @param settings [Hash{Symbol => Object}]
    # @return [Config] with these settings changed
    # @raise [ConfigError]
    def with(**settings)
      self.class.build(@given.merge(Sources.from_code(settings)), serving: @serving, doubts: @doubts, spelling: @spelling)
    end

    # @return [Address] `listen`, taken apart
    def address = Address.parse(listen)

    # @return [String] the `aud` of accepted tokens
    def resource_identifier = @values.fetch(:resource_identifier) || address.url(path)

    # The hub's public URL: the resource identifier when that is one, with the hub's own path.
    #
    # @return [String] against which relative topics and patterns are resolved; it always ends with `path`
    def hub_url
      origin = resource_identifier[%r{\Ahttps?://[^/?#]+}i] or return address.url(path)
      "#{origin}#{path}"
    end

    # Fields of one form or query component: all topics or matchers that are allowed, and some more that may be ignored.
    #
    # @return [Integer]
    def max_fields = [max_topics, max_matchers].max + OTHER_FIELDS

    # @return [Array<Issuer>] whose tokens are accepted, each with its keys as they were given
    attr_reader :issuer_list

    # @return [Boolean] whether `issuer` has a key of its own, beside `issuers`
    def own_issuer? = !!(publisher_key || subscriber_key || jwks)

    # @return [Boolean] whether developer mode chose the secret that everybody knows
    def development_secret? = @development_secret

    # @return [Array<Address>] where the broker listens, beside its Unix socket
    def broker_addresses = broker_listen.map { |text| Address.parse(text) }

    # A secret, or issuers of tokens, are there to be asked for: then on the Unix socket, too. The secret that everybody
    # knows guards nothing.
    #
    # @return [Boolean] whether clients of the broker must say who they are
    def broker_authenticates? = !!broker_secret_file || (issuer_list.any? && !development_secret?)

    # @param name [Symbol]
    # @return [Boolean] whether it was set by somebody
    def given?(name) = @given.key?(name)

    # Who is on this machine is trusted with as many connections as there may be, unless somebody has said how many: it
    # may be a proxy, and all its clients.
    #
    # @return [Boolean] whether max_connections_per_address is about loopback addresses, too
    def counts_loopback? = given?(:max_connections_per_address)

    # @param name [Symbol]
    # @return [String] where the value comes from: `--listen`, `HIKYAKU_LISTEN`, `hub.yml:3: listen`, `--dev` or `default`
    def origin(name)
      return @given[name].origin if given?(name)
      developer?(name) ? @given[:dev].origin : "default"
    end

    # @api private
    # @return [String] the flag that says it, as the command writes it
    def flag(name) = "--#{@spelling ? @spelling.call(Settings[name]) : Settings[name].flags.first}"

    # @return [Array<String>] sentences about what works but is probably not meant
    def doubts
      rules = Rules.new(self)
      @doubts + ((@serving == :broker) ? rules.exposures : rules.doubts)
    end

    # @return [Hash{Symbol => Object}] with secrets hidden
    def to_h
      Settings::ALL.to_h do |setting|
        value = public_send(setting.name)
        [setting.name, (setting.secret? && value) ? Issuer.show_key(value) : value]
      end
    end

    # @return [String] what was set, with secrets hidden
    def inspect
      shown = to_h.filter_map { |name, value| "#{name}=#{value.inspect}" if given?(name) || developer?(name) }
      "#<#{[self.class.name, *shown].join(" ")}>"
    end
    alias_method :to_s, :inspect

    # @return [void]
    def pretty_print(printer) = printer.text(inspect)

    private

    def settle(given, serving: true, doubts: [], spelling: nil)
      @given = prune(given).freeze
      @serving = serving
      @spelling = spelling
      @doubts = doubts.freeze
      @values = Settings::ALL.to_h { |setting| [setting.name, given?(setting.name) ? @given[setting.name].value : setting.default] }
      @development_secret = false
      develop if @values[:dev]
      @values.freeze
      @issuer_list = gather_issuers
      Rules.new(self).check!(serving: serving)
      freeze
    end

    # `--alg` is meant for both roles, whatever weaker source says of one of them.
    def prune(given)
      return given unless given.key?(:alg)
      given.reject { |name, one| %i[publisher_alg subscriber_alg].include?(name) && one.rank < given[:alg].rank }
    end

    def develop
      Settings::DEVELOPMENT.each { |name, value| @values[name] = value unless given?(name) }
      return if own_issuer? || issuers.any?
      @development_secret = true
      @values[:publisher_key] = @values[:subscriber_key] = Settings::DEVELOPMENT_SECRET
    end

    def developer?(name)
      dev && !given?(name) &&
        (Settings::DEVELOPMENT.key?(name) || (development_secret? && Issuer::SECRETS.include?(name)))
    end

    def gather_issuers
      return issuers unless own_issuer?
      own = Issuer.new(**Issuer::NAMES.to_h { |name| [name, public_send(name)] })
      [own, *issuers].freeze
    end
  end
end
