# frozen_string_literal: true

require_relative "../../error"
require_relative "../settings"
require_relative "caddyfile"
require_relative "issuer_block"
require_relative "transport"
require_relative "units"

module Hikyaku
  class Config
    class GoHub
      # What the directives of a block `mercure` say, of the Go hub's 0.x and 1.0, as settings.
      class Directives
        # Directives with one method each.
        KNOWN = %w[
          anonymous subscriptions publisher_jwt subscriber_jwt publisher_jwks_url subscriber_jwks_url cors_origins publish_origins cookie_name
          heartbeat write_timeout dispatch_timeout max_request_body_size resource_identifier protocol_version_compatibility issuer
          trusted_issuers transport transport_url demo playground ui debugger public_urls
        ].freeze
        # What there is nothing for to set.
        WITHOUT_COUNTERPART = %w[name topic_matcher_cache topic_selector_cache subscriber_list_cache_size].freeze
        PLAYGROUND = {cors_origins: ["*"], publish_origins: ["*"], cookie_name: "mercure_access_token"}.freeze
        COMPATIBILITY = %w[7 8].freeze
        private_constant :KNOWN, :WITHOUT_COUNTERPART, :PLAYGROUND, :COMPATIBILITY

        attr_reader :settings
        attr_reader :doubts
        attr_reader :history

        def initialize(directives)
          @settings = {}
          @doubts = []
          directives.each { |directive| read(directive) }
          PLAYGROUND.each { |name, value| @settings[name] ||= [value, @playground] } if @playground
        end

        private

        def read(directive)
          name = directive.name
          return send(name, directive) if KNOWN.include?(name)
          return doubt(directive, "there is nothing for it to set in Hikyaku") if WITHOUT_COUNTERPART.include?(name)
          close = Config.suggest(name, KNOWN + WITHOUT_COUNTERPART)
          raise ConfigError, "#{directive.origin}: unknown directive#{"; did you mean #{close}?" if close}"
        end

        def set(name, value, directive) = @settings[name] = [value, directive.origin]

        def doubt(directive, text) = @doubts << "#{directive.origin}: #{text}"

        # The one word behind a directive.
        def word(directive)
          directive.fail!("expected one value") unless directive.arguments.size == 1 && !directive.arguments.first.empty?
          directive.arguments.first
        end

        def list(directive)
          directive.fail!("expected one value at least") if directive.arguments.empty?
          directive.arguments
        end

        def seconds(directive)
          Units.seconds(word(directive)) || directive.fail!("expected a duration as 15s or 1m30s, got #{word(directive)[0, 60].inspect}")
        end

        def on(name, directive)
          directive.fail!("expected nothing behind it, since it is a switch") if directive.arguments.any?
          set(name, true, directive)
        end

        # -- directives

        def anonymous(directive) = on(:anonymous, directive)

        def subscriptions(directive) = on(:subscriptions, directive)

        def publisher_jwt(directive) = jwt(:publisher, directive)

        def subscriber_jwt(directive) = jwt(:subscriber, directive)

        def publisher_jwks_url(directive) = set(:publisher_key, key_set(directive, word(directive)), directive)

        def subscriber_jwks_url(directive) = set(:subscriber_key, key_set(directive, word(directive)), directive)

        def cors_origins(directive) = set(:cors_origins, list(directive), directive)

        def publish_origins(directive) = set(:publish_origins, list(directive), directive)

        def cookie_name(directive) = set(:cookie_name, word(directive), directive)

        def resource_identifier(directive) = set(:resource_identifier, word(directive), directive)

        def heartbeat(directive) = set(:heartbeat, seconds(directive), directive)

        # There it is how long a connection may last.
        def write_timeout(directive) = set(:max_lifetime, seconds(directive), directive)

        def dispatch_timeout(directive)
          seconds = seconds(directive)
          return doubt(directive, "Hikyaku closes readers that take nothing in any case: write_timeout stays as it is") if seconds.zero?
          set(:write_timeout, [seconds, 1].max, directive)
        end

        def max_request_body_size(directive)
          bytes = Units.bytes(word(directive)) or directive.fail!("expected a size as 512KB or 1MiB, got #{word(directive)[0, 60].inspect}")
          return doubt(directive, "Hikyaku has a limit in any case: max_request_bytes stays as it is") if bytes.zero?
          set(:max_request_bytes, bytes, directive)
        end

        def protocol_version_compatibility(directive)
          version = word(directive)
          directive.fail!("expected 7 or 8, got #{version[0, 60].inspect}") unless COMPATIBILITY.include?(version)
          set(:legacy, true, directive)
        end

        def trusted_issuers(directive) = @settings[:trusted_issuers] = [list(directive), directive.origin]

        def issuer(directive)
          given = IssuerBlock.new(directive)
          (@settings[:issuers] ||= [[], directive.origin]).first << given.issuer
          @doubts.concat(given.doubts)
        end

        def transport(directive) = keep(Transport.from_directive(directive))

        def transport_url(directive) = keep(Transport.from_url(word(directive), directive.origin))

        def demo(directive)
          on(:dev, directive)
          doubt(directive, "developer mode is on: whoever reaches the hub can make tokens on its page; not for production")
        end

        def playground(directive)
          demo(directive)
          @playground = directive.origin
        end

        def ui(directive) = doubt(directive, "the page comes with developer mode only (--dev), which also makes tokens for whoever asks: it stays off")
        alias_method :debugger, :ui

        def public_urls(directive)
          doubt(directive, "Hikyaku answers under every name; set resource_identifier to the URL that tokens are made for")
        end

        def jwt(role, directive)
          key, alg, *rest = directive.arguments
          directive.fail!("expected a key, and an algorithm if there is one") if key.to_s.empty? || rest.any?
          set(:"#{role}_key", IssuerBlock.key(key), directive)
          set(:"#{role}_alg", alg, directive) unless alg.to_s.empty?
        end

        def key_set(directive, url) = IssuerBlock.key_set(directive, url)

        def keep(transport)
          @history = transport
          @doubts.concat(transport.doubts)
        end
      end
      private_constant :Directives
    end
  end
end
