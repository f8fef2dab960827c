# frozen_string_literal: true

require_relative "command"
require_relative "settings"

module Hikyaku
  module CLI
    # What commands share that talk to a hub: where it is, and the token to show it.
    class Client < Command
      include Settings

      # Seconds that a token lives that is made for one request.
      MOMENT = 60
      private_constant :MOMENT

      def run(argv)
        super
      rescue ConfigError => error
        raise ConfigError, error.message.sub("say insecure: true", "give --insecure")
      end

      private

      def hub_options(parser)
        parser.separator("\nHub:")
        value_option(parser, "--hub URL", "http(s)://HOST/PATH, unix:SOCKET or unix:SOCKET:/PATH (HIKYAKU_HUB; else what the configuration says)") { |url| @hub = url }
        value_option(parser, "--token TOKEN", "Access token (HIKYAKU_TOKEN; else one is made with the key of the configuration)") { |token| @token = token }
        parser.on("--insecure", *wrap("Let the token travel over plain HTTP to another machine")) { @insecure = true }
        configuration(parser)
        client_settings(parser)
      end

      # Where to connect to.
      def hub
        @address ||= with_path(@hub || given(env["HIKYAKU_HUB"]) || configured_hub)
      end

      def configured_hub
        address = config.address
        if config.given?(:resource_identifier) && config.hub_url == config.resource_identifier then config.hub_url
        elsif address.unix? then "unix:#{address.path}:#{config.path}"
        else address.url(config.path)
        end
      end

      # A host alone stands for the hub of the configured path there.
      def with_path(url) = url.match?(%r{\Ahttps?://[^/?#]+/?\z}i) ? url.chomp("/") + config.path : url

      # What tokens for it must be made for: the hub's URL is the obvious identifier, unless another is configured.
      def audience
        return config.resource_identifier if config.given?(:resource_identifier) || !hub.match?(/\Ahttps?:/i)
        hub
      end

      def token = given(@token) || given(env["HIKYAKU_TOKEN"])

      def given(text) = (text unless text.to_s.strip.empty?)

      def maker(role)
        require_relative "../web/token_maker"
        Web::TokenMaker.for(config, role: role, issuer: (config.issuer if config.given?(:issuer)), audience: audience)
      end

      def key?(role) = config.issuer_list.any? { |issuer| issuer.signing(role).last }

      def publisher_token(topics)
        return token if token
        unless key?(:publisher)
          raise UsageError, "there is no token and no key to make one: give --token, HIKYAKU_TOKEN, --publisher-key or --dev"
        end
        maker(:publisher).call(publish: topics, expires_in: MOMENT)
      end
    end
  end
end
