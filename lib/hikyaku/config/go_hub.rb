# frozen_string_literal: true

require_relative "go_hub/caddyfile"
require_relative "go_hub/directives"
require_relative "go_hub/issuer_block"
require_relative "go_hub/server_name"
require_relative "go_hub/transport"

module Hikyaku
  class Config
    # What the variables of the Go hub's image say, as settings of Hikyaku; and what they say that it cannot do.
    class GoHub
      DIRECTIVES = "MERCURE_EXTRA_DIRECTIVES"
      TRANSPORT = "MERCURE_TRANSPORT_URL"
      ISSUERS = "MERCURE_TRUSTED_ISSUERS"
      SITE = "SERVER_NAME"
      KEY_SETS = {"MERCURE_PUBLISHER_JWKS_URL" => :publisher_key, "MERCURE_SUBSCRIBER_JWKS_URL" => :subscriber_key}.freeze
      # Variables that are read here; those of keys and algorithms are in the table of settings.
      VARIABLES = [DIRECTIVES, TRANSPORT, ISSUERS, *KEY_SETS.keys].freeze
      # What Symfony's bundle reads, in the same file.
      OF_APPLICATIONS = %w[MERCURE_URL MERCURE_PUBLIC_URL MERCURE_JWT_SECRET MERCURE_PUBLISH_URL MERCURE_JWT_TOKEN].freeze
      LICENSE = "MERCURE_LICENSE"
      OF_CADDY = /\A(?:CADDY_\w+|GLOBAL_OPTIONS)\z/
      private_constant :DIRECTIVES, :TRANSPORT, :ISSUERS, :SITE, :KEY_SETS, :OF_CADDY

      def initialize(env)
        @env = env.to_h.transform_values { |value| value.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?") }.reject { |_, value| value.strip.empty? }
        @directives = Directives.new(Caddyfile.new(@env.fetch(DIRECTIVES, ""), env: @env, variable: DIRECTIVES).directives)
        @site = ServerName.new(@env.fetch(SITE, ""), SITE)
      end

      def settings
        found = @directives.settings.slice(*Settings::ALL.map(&:name))
        KEY_SETS.each { |variable, name| found[name] ||= [IssuerBlock.key_set(at(variable), @env[variable]), variable] if @env.key?(variable) }
        found[:listen] = [@site.listen, SITE] if @site.listen
        found[:storage] = [history.folder, history.origin] if history&.folder
        found[:issuer] = [issuers.first, issuers_origin] if issuers.any?
        found
      end

      def issuers
        @issuers ||= @directives.settings[:trusted_issuers]&.first || @env.fetch(ISSUERS, "").split(/[\s,]+/).reject(&:empty?)
      end

      def issuers_origin = @directives.settings[:trusted_issuers]&.last || ISSUERS

      def doubts
        transport = @directives.history ? [] : history&.doubts.to_a
        [*@directives.doubts, *transport, *@site.doubts, *others]
      end

      private

      # A directive counts more than the variable, as in the Go hub.
      def history
        @history ||= @directives.history || (Transport.from_url(@env[TRANSPORT], TRANSPORT) if @env.key?(TRANSPORT))
      end

      def others
        theirs = OF_APPLICATIONS & @env.keys
        caddys = @env.keys.grep(OF_CADDY)
        [
          ("#{list(theirs)} #{(theirs.size > 1) ? "are" : "is"} for applications that publish; the hub does not read #{(theirs.size > 1) ? "them" : "it"}" if theirs.any?),
          ("#{list(caddys)} #{(caddys.size > 1) ? "configure" : "configures"} Caddy, which is not here: set what it says in the server in front" if caddys.any?),
          ("#{LICENSE} is not read: Hikyaku takes no licence key" if @env.key?(LICENSE))
        ].compact
      end

      def list(names) = [names[0..-2].join(", "), names.last].reject(&:empty?).join(" and ")

      def at(origin) = Caddyfile::Directive.new(origin: origin)
    end
  end
end
