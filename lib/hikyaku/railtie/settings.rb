# frozen_string_literal: true

require_relative "../config"
require_relative "../publisher/endpoint"
require_relative "../presence"
require_relative "../presence/inquiry"
require_relative "../turbo"
require_relative "newest"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # `config.hikyaku`, with what a Rails application already knows put in where nothing was set:
    #
    #     publisher_key, subscriber_key    credentials (hikyaku: {publisher_key: …, subscriber_key: …}), else derived
    #                                      from secret_key_base
    #     resource_identifier              the hub's own URL if it is in another process, else from default_url_options,
    #                                      else http://localhost:3000 and the path
    #     path                             /.well-known/mercure, below relative_url_root
    #     cookie_name                      the protocol's, or one without __Secure- for plain HTTP on a developer's machine
    #
    # Beside them are settings of the application and not of the hub: where the hub is, and those of Turbo::Settings.
    #
    # @api private
    class Settings
      HUB = :hub
      OUTBOX = :outbox
      CODEC = %i[codec codec_params].freeze
      KEYS = %i[publisher_key subscriber_key].freeze
      SALT = "hikyaku access tokens"
      COOKIE = "mercure_access_token"
      NOWHERE = {}.freeze
      private_constant :HUB, :OUTBOX, :CODEC, :KEYS, :SALT, :COOKIE, :NOWHERE

      # @param app [::Rails::Application]
      def initialize(app)
        @app = app
        @lock = Mutex.new
      end

      # @return [Config]
      # @raise [ConfigError] a setting that does not exist, or does not fit
      def config = @config || @lock.synchronize { @config ||= build }

      # @return [Turbo::Settings]
      # @raise [ConfigError]
      def turbo = @turbo ||= Turbo::Settings.new(@app.config.hikyaku.to_h.symbolize_keys.slice(*Turbo::Settings::NAMES))

      # @return [String] the path in URLs that browsers use at which pages ask for their tokens
      def streams_path = "#{root}#{turbo.path}"

      # @return [Presence::Settings]
      # @raise [ConfigError]
      def presence = @presence ||= Presence::Settings.new(given.slice(*Presence::Settings::NAMES))

      # @return [String] the path in URLs that browsers use at which pages ask who is here
      def presence_path = "#{root}#{presence.path}"

      # @return [Boolean, Hash, nil] see OutboxGlue
      def outbox = given[OUTBOX]

      # @return [Boolean, nil] see CodecGlue
      def codec = given[:codec]

      # @return [Boolean, Hash, nil] see CodecGlue
      def codec_params = given[:codec_params]

      # @return [String, nil] the hub in another process that this application publishes to
      def hub = hub_options[:url]

      # @return [Boolean] whether the hub is in another process
      def remote? = !hub.nil?

      # @return [Boolean] whether Puma runs the hub beside its workers
      def beside? = !remote? && !Companion::Folder.named.nil? && !::Rails.env.test?

      # @return [Publisher] to the hub in another process
      def connect
        rest = hub_options.except(:url)
        signing = {key: config.publisher_key, issuer: config.issuer, alg: config.publisher_alg || config.alg} unless rest[:token]
        Hikyaku.connect(hub, **signing, audience: config.resource_identifier, **rest)
      end

      # @return [Hash{Symbol => Object}] of the hub in another process, what it takes to talk to it beside its URL, if it was said:
      #   `token`, `ca_file`, `insecure`
      def means = hub_options.slice(:token, :ca_file, :insecure)

      # @return [Newest, nil] what asks the hub, if that is in another process
      # @raise [Companion::Absent] the hub beside Puma is not there yet
      def newest
        options = remote? ? hub_options.slice(:url, :ca_file, :insecure) : beside_options
        Newest.new(options[:url], config, **options.except(:url), logger: ::Rails.logger) if options
      end

      # @return [Presence::Inquiry, nil] what asks the hub, if that is in another process
      # @raise [Companion::Absent] the hub beside Puma is not there yet
      def inquiry
        options = remote? ? hub_options.slice(:url, :ca_file, :insecure) : beside_options
        Presence::Inquiry.new(options[:url], config, **options.except(:url)) if options
      end

      # @return [String, nil] the URL under which browsers find the hub; nil when nobody has said it, so that it is the
      #   application's own URL, or, with a hub in another process, not known
      def public_url
        return config.hub_url if !remote? && given[:resource_identifier]
        return unless remote?
        candidate = given[:resource_identifier] || (hub if hub.start_with?("https:") || ::Rails.env.local?)
        candidate if candidate&.match?(%r{\Ahttps?://}i)
      end

      # @return [String] the hub's path in URLs that browsers use
      def public_path = public_url&.[](%r{\Ahttps?://[^/?#]+(/[^?#]*)}i, 1) || config.path

      # @return [String] the hub's path in this application's routes: without `relative_url_root`
      def route_path = config.path.delete_prefix(root)

      # @return [String, nil] what is wrong when it is not known under which URL clients find the hub, though it should be
      def doubt
        return if ::Rails.env.local? || remote? || given[:resource_identifier] || default_host
        "nobody said under which URL clients find the hub; it takes itself for #{config.hub_url}: set config.hikyaku.resource_identifier"
      end

      # @return [Hash] see ActionDispatch::HostAuthorization
      def host_authorization = @app.config.host_authorization

      # @return [Array] see ActionDispatch::HostAuthorization
      def hosts = Array(@app.config.hosts)

      # @return [Boolean] whether the application refuses plain HTTP
      def force_ssl? = !!@app.config.force_ssl

      # @return [Boolean] whether every request counts as encrypted
      def assume_ssl? = !!@app.config.assume_ssl

      # @return [Boolean] whether the routes have the line `hikyaku`
      def routed?
        @app.reload_routes_unless_loaded if @app.respond_to?(:reload_routes_unless_loaded)
        @app.routes.named_routes.key?(Routing::NAME)
      end

      # @return [String] without keys
      def inspect = "#<#{self.class.name} #{hub || "in this process"}>"

      private

      def given = @app.config.hikyaku.to_h.symbolize_keys.compact

      # Tests record, and talk to nobody. Asked for with each request: what was there when the configuration was read holds.
      def hub_options
        return NOWHERE if ::Rails.env.test?
        @hub_options || read_hub.tap { |options| @hub_options = options.freeze if @config }
      end

      def read_hub
        case (hub = given[HUB])
        when Hash then hub.symbolize_keys.then { |options| options.merge(url: options[:url].presence&.to_s) }
        else {url: hub.to_s.presence}
        end
      end

      def beside_options
        folder = Companion::Folder.named if beside?
        {url: "unix:#{folder.socket}:#{folder.about[:path]}"} if folder
      end

      def build
        settings = {path: "#{root}#{Publisher::Endpoint::DEFAULT_PATH}"}.merge(given.except(HUB, OUTBOX, *CODEC, *Turbo::Settings::NAMES, *Presence::Settings::NAMES))
        settings[:subscriptions] = true if presence.on? && !settings.key?(:subscriptions)
        settings = keys(settings).merge(settings)
        settings[:resource_identifier] ||= remote? ? endpoint.audience : "#{origin}#{settings[:path]}"
        settings[:cookie_name] ||= COOKIE if ::Rails.env.local? && !settings[:resource_identifier].start_with?("https:")
        Config.new(**settings)
      rescue ConfigError => error
        raise ConfigError, "config.hikyaku: #{error.message}"
      end

      def endpoint = Publisher::Endpoint.new(hub, open_timeout: 5, read_timeout: 5, write_timeout: 5)

      # A JWK Set stands in place of keys.
      def keys(settings)
        stored = (@app.credentials[:hikyaku] || {}).to_h.symbolize_keys.slice(*KEYS).compact
        return stored if settings.key?(:jwks)
        missing = KEYS - stored.keys - settings.keys
        missing.to_h { |name| [name, derived_key] }.merge(stored)
      end

      def derived_key = @derived_key ||= @app.key_generator.generate_key(SALT, 32).unpack1("H*")

      def root = @app.config.relative_url_root.to_s.chomp("/")

      def origin
        options = default_host or return "http://localhost:#{ENV.fetch("PORT", 3000)}"
        scheme = options[:protocol].to_s[/\A[a-z]+/] || (force_ssl? ? "https" : "http")
        "#{scheme}://#{options[:host]}#{":#{options[:port]}" if options[:port]}"
      end

      def default_host
        mailer = @app.config.action_mailer.default_url_options if @app.config.respond_to?(:action_mailer)
        [@app.routes.default_url_options, mailer].compact.find { |options| options[:host].present? }
      end
    end
  end
end
