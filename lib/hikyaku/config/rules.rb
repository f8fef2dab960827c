# frozen_string_literal: true

require_relative "../error"
require_relative "secret_file"
require_relative "settings"

module Hikyaku
  class Config
    # What settings must and should be together.
    class Rules
      def initialize(config)
        @config = config
      end

      def check!(serving:)
        issuers_are_distinct!
        return unless serving

        broker! if serving == :broker || @config.broker
        return if serving == :broker

        somebody_can_connect!
        development_secret_stays_at_home!
        handover_takes_the_native_engine!
      end

      def doubts
        [one_sided, known_secret, audience, other_path, other_generation].compact + exposures
      end

      def exposures
        keys = @config.issuer_list.flat_map { |issuer| [issuer.publisher_key, issuer.subscriber_key, issuer.jwks] }.compact
        files = keys.filter_map { |key| key[%r{\A(?:file:(?://(?=/))?|@)(.+)}i, 1] }
        (files + files_with_keys).uniq.filter_map { |path| SecretFile.doubt(path) }
      end

      private

      def issuers_are_distinct!
        names = @config.issuers.map(&:issuer)
        names << @config.issuer if @config.own_issuer?
        twice = names.tally.find { |_, count| count > 1 }&.first or return
        raise ConfigError, "#{origin(:issuers)}: issuer #{twice} is given twice; an issuer's keys belong together"
      end

      def somebody_can_connect!
        return if @config.anonymous || keys?
        raise ConfigError, "nobody could use this hub: give --publisher-key and --subscriber-key, --jwks or --anonymous, " \
          "or --dev to try it out"
      end

      def development_secret_stays_at_home!
        return unless @config.development_secret? && !@config.address.loopback?
        raise ConfigError, "#{origin(:listen)}: developer mode uses a secret that everybody knows, so it listens on this machine " \
          "only, not on #{@config.listen}; give --publisher-key and --subscriber-key"
      end

      def handover_takes_the_native_engine!
        return if @config.handover.nil? || @config.engine == "c"
        raise ConfigError, "#{origin(:handover)}: only the engine in C takes connections over; give --engine c"
      end

      def broker!
        broker_is_guarded!
        broker_level_has_storage!
        return if @config.broker_lease <= @config.broker_max_lease
        raise ConfigError, "#{origin(:broker_lease)}: #{@config.broker_lease} seconds are more than a receiver may ask for; raise #{@config.flag(:broker_max_lease)}"
      end

      def broker_is_guarded!
        exposed = @config.broker_addresses.find { |address| !address.loopback? } or return
        return if @config.broker_authenticates?
        raise ConfigError, "#{origin(:broker_listen)}: other machines reach #{exposed}, so clients must say who they are: give " \
          "#{@config.flag(:broker_secret_file)}, or whose tokens are good (--jwks, --publisher-key); or listen on 127.0.0.1"
      end

      def broker_level_has_storage!
        return if @config.storage || [nil, "memory"].include?(@config.broker_level)
        raise ConfigError, "#{origin(:broker_level)}: without storage there is level memory alone; give --storage DIR"
      end

      # The YAML files in which a secret stands.
      def files_with_keys
        given = %i[publisher_key subscriber_key].to_h { |name| [name, [@config.public_send(name)]] }
        given[:issuers] = @config.issuers.flat_map { |issuer| [issuer.publisher_key, issuer.subscriber_key] }
        given.filter_map { |name, keys| origin(name)[/\A(.+):\d+: /, 1] if keys.compact.any? { |key| SecretFile.literal?(key) } }
      end

      def keys? = @config.own_issuer? || @config.issuers.any?

      def one_sided
        return if @config.development_secret? || @config.jwks || @config.issuers.any?
        if !@config.publisher_key
          "nobody can publish over HTTP: there is no publisher_key"
        elsif !@config.subscriber_key && !@config.anonymous
          "nobody can subscribe: there is neither subscriber_key nor anonymous"
        end
      end

      def known_secret
        return if @config.address.loopback? || @config.development_secret?
        keys = @config.issuer_list.flat_map { |issuer| [issuer.publisher_key, issuer.subscriber_key] }
        "a key is the secret of development images, which everybody knows" if keys.include?(Settings::DEVELOPMENT_SECRET)
      end

      def audience
        return if @config.address.loopback? || @config.given?(:resource_identifier) || !keys?
        "tokens must be made for #{@config.resource_identifier}; set resource_identifier to the URL under which clients know the hub"
      end

      def other_path
        identifier = @config.resource_identifier
        return if identifier == @config.hub_url || !identifier.match?(%r{\Ahttps?://[^/?#]+/[^?#]}i)
        "the hub is served at #{@config.path}, which is not the path of resource_identifier, #{identifier}"
      end

      # The Go hub's variables may come from a deployment of 0.x, whose tokens name neither issuer nor audience.
      def other_generation
        return if @config.legacy || %i[legacy issuer issuers].any? { |name| @config.given?(name) }
        from = %i[publisher_key subscriber_key].map { |name| origin(name) }.find { |place| place.start_with?("MERCURE_") } or return
        "#{from}: tokens of Mercure 0.x are refused; if your applications make such tokens, set HIKYAKU_LEGACY=true, or else MERCURE_TRUSTED_ISSUERS to their iss"
      end

      def origin(name) = @config.origin(name)
    end
  end
end
