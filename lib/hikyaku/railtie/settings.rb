# frozen_string_literal: true

require_relative "../config"
require_relative "../publisher/endpoint"

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
    # @api private
    class Settings
      # Not a setting of the hub, but of the application: where the hub is.
      HUB = :hub
      KEYS = %i[publisher_key subscriber_key].freeze
      SALT = "hikyaku access tokens"
      COOKIE = "mercure_access_token"
      private_constant :HUB, :KEYS, :SALT, :COOKIE

      # @param app [::Rails::Application]
      def initialize(app)
        @app = app
        @lock = Mutex.new
      end

      # @return [Config]
      # @raise [ConfigError] a setting that does not exist, or does not fit
      def config = @config || @lock.synchronize { @config ||= build }

      # @return [String, nil] the hub in another process that this application publishes to
      def hub = hub_options[:url]

      # @return [Boolean] whether the hub is in another process
      def remote? = !hub.nil?

      # @return [Publisher] to the hub in another process
      def connect
        rest = hub_options.except(:url)
        signing = {key: config.publisher_key, issuer: config.issuer, alg: config.publisher_alg || config.alg} unless rest[:token]
        Hikyaku.connect(hub, **signing, audience: config.resource_identifier, **rest)
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

      # @return [Boolean] whether it is not known under which URL clients find the hub, though it should be
      def nameless? = !::Rails.env.local? && !remote? && given[:resource_identifier].nil? && default_host.nil?

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

      # Tests record, and talk to nobody.
      def hub_options
        return {} if ::Rails.env.test?
        case (hub = given[HUB])
        when Hash then hub.symbolize_keys.then { |options| options.merge(url: options[:url].presence&.to_s) }
        else {url: hub.to_s.presence}
        end
      end

      def build
        settings = {path: "#{root}#{Publisher::Endpoint::DEFAULT_PATH}"}.merge(given.except(HUB))
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
