# frozen_string_literal: true

require_relative "../../config"
require_relative "../../client/publisher/endpoint"
require_relative "../presence"
require_relative "../presence/inquiry"
require_relative "../turbo"
require_relative "newest"
require_relative "served"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # `config.hikyaku`, with what a Rails application already knows put in where nothing was set:
    #
    #     publisher_key, subscriber_key    credentials (hikyaku: {publisher_key: …, subscriber_key: …}), else derived
    #                                      from secret_key_base
    #     resource_identifier              the hub's own URL if it is in another process, else from default_url_options,
    #                                      else from where the server listens, else http://localhost:3000 and the path
    #     path                             /.well-known/mercure, below relative_url_root
    #     cookie_name                      the protocol's, or one without __Secure- for plain HTTP on a developer's machine
    #
    # Beside them are settings of the application and not of the hub: where the hub is, what happens without one, and those of
    # Turbo::Settings.
    class Settings
      HUB = :hub
      OUTBOX = :outbox
      WITHOUT = :without_hub
      REACTIONS = %i[raise log].freeze
      CODEC = %i[codec codec_params].freeze
      KEYS = %i[publisher_key subscriber_key].freeze
      SALT = "hikyaku access tokens"
      COOKIE = "mercure_access_token"
      NOWHERE = {}.freeze
      DEFAULT = "http://localhost:3000"
      private_constant :HUB, :OUTBOX, :WITHOUT, :REACTIONS, :CODEC, :KEYS, :SALT, :COOKIE, :NOWHERE, :DEFAULT

      def initialize(app)
        @app = app
        @lock = Mutex.new
      end

      def config = @config || @lock.synchronize { @config ||= build }

      def serve_at(url)
        @lock.synchronize do
          @served = url
          @config = nil
        end
      end

      def without_hub(serving: false)
        value = given.fetch(WITHOUT) { (::Rails.env.development? && !serving) ? :log : :raise }
        return value.to_sym if REACTIONS.include?(value.to_s.to_sym)
        raise ConfigError, "config.hikyaku.without_hub must be #{REACTIONS.map(&:inspect).join(" or ")}, not #{value.inspect}"
      end

      def turbo = @turbo ||= Turbo::Settings.new(@app.config.hikyaku.to_h.symbolize_keys.slice(*Turbo::Settings::NAMES))

      def streams_path = "#{root}#{turbo.path}"

      def presence = @presence ||= Presence::Settings.new(given.slice(*Presence::Settings::NAMES))

      def presence_path = "#{root}#{presence.path}"

      def outbox = given[OUTBOX]

      def codec = given[:codec]

      def codec_params = given[:codec_params]

      def hub = hub_options[:url]

      def remote? = !hub.nil?

      def beside? = !remote? && !Server::Sidecar::Folder.named.nil? && !::Rails.env.test?

      def connect
        rest = hub_options.except(:url)
        signing = {key: config.publisher_key, issuer: config.issuer, alg: config.publisher_alg || config.alg} unless rest[:token]
        Hikyaku.connect(hub, **signing, audience: config.resource_identifier, **rest)
      end

      def means = hub_options.slice(:token, :ca_file, :insecure)

      def newest
        url, config, options = inquired
        Newest.new(url, config, **options, logger: ::Rails.logger) if url
      end

      def inquiry
        url, config, options = inquired
        Presence::Inquiry.new(url, config, **options) if url
      end

      def public_url
        return config.hub_url if !remote? && given[:resource_identifier]
        return unless remote?
        candidate = given[:resource_identifier] || (hub if hub.start_with?("https:") || ::Rails.env.local?)
        candidate if candidate&.match?(%r{\Ahttps?://}i)
      end

      # What the application's server that runs says of its hub: its port may be another than the usual one.
      def running_hub = (running&.about unless remote?)

      def public_path = public_url&.[](%r{\Ahttps?://[^/?#]+(/[^?#]*)}i, 1) || config.path

      def route_path = config.path.delete_prefix(root)

      def doubt
        return if ::Rails.env.local? || remote? || given[:resource_identifier] || default_host
        "nobody said under which URL clients find the hub; it takes itself for #{config.hub_url}: set config.hikyaku.resource_identifier"
      end

      def host_authorization = @app.config.host_authorization

      def hosts = Array(@app.config.hosts)

      def force_ssl? = !!@app.config.force_ssl

      def assume_ssl? = !!@app.config.assume_ssl

      def routed?
        @app.reload_routes_unless_loaded if @app.respond_to?(:reload_routes_unless_loaded)
        @app.routes.named_routes.key?(Routing::NAME)
      end

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

      def running = beside? ? Server::Sidecar::Folder.named : Server::Sidecar::Folder.found

      def inquired
        return [hub, config, hub_options.slice(:ca_file, :insecure)] if remote?
        folder = running or return
        about = folder.about
        ["unix:#{folder.socket}:#{about[:path]}", config.with(resource_identifier: about[:resource_identifier]), {}]
      end

      def build
        settings = {path: "#{root}#{Publisher::Endpoint::DEFAULT_PATH}"}.merge(given.except(HUB, OUTBOX, WITHOUT, *CODEC, *Turbo::Settings::NAMES, *Presence::Settings::NAMES))
        settings[:subscriptions] = true if presence.on? && !settings.key?(:subscriptions)
        settings = keys(settings).merge(settings)
        settings[:resource_identifier] ||= remote? ? endpoint.audience : (told || "#{origin}#{settings[:path]}")
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

      # What the hub beside Puma takes for its own URL.
      def told
        Server::Sidecar::Folder.named.about[:resource_identifier] if beside?
      rescue Server::Sidecar::Absent
        nil
      end

      # A new application says localhost:3000 in its default_url_options, whatever port the server is given.
      def origin
        stated = default_host&.then { |options| url_of(options) }
        return stated unless [nil, DEFAULT].include?(stated)
        @served || Served.url || "http://localhost:#{ENV.fetch("PORT", 3000)}"
      end

      def url_of(options)
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
