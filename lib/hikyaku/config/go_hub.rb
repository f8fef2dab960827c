# frozen_string_literal: true

require_relative "go_hub/caddyfile"
require_relative "../error"
require_relative "settings"
require_relative "issuer"
require_relative "types"

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

        attr_reader :settings, :doubts, :history

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

      # `issuer ID { publisher { jwt KEY [ALG] } subscriber { jwks_uri URL [ALG] } }`
      class IssuerBlock
        ROLES = %w[publisher subscriber].freeze
        # A key in a file, as a placeholder of Caddy.
        FILE = /\A\{file\.(.+)\}\z/
        private_constant :ROLES, :FILE

        class << self
          def key(text) = (match = FILE.match(text)) ? "file:#{match[1]}" : text

          def key_set(directive, url)
            text = url.sub(%r{\Afile://(?:localhost)?/}, "file:/")
            Types.key_set.cast(text)
          rescue Type::Invalid => error
            directive.fail!(error.message)
          end
        end

        attr_reader :issuer, :doubts

        def initialize(directive)
          @doubts = []
          directive.fail!("expected the issuer's identifier, and a block") unless directive.arguments.size == 1 && directive.block
          members = {issuer: directive.arguments.first}
          directive.block.each { |inner| members.merge!(member(inner)) }
          @issuer = Issuer.cast(members)
        rescue Type::Invalid => error
          directive.fail!(error.message)
        end

        private

        def member(inner)
          return role(inner) if ROLES.include?(inner.name) && inner.arguments.empty? && inner.block&.size == 1
          inner.fail!("expected publisher, subscriber or authorization_server") unless inner.name == "authorization_server"
          @doubts << "#{inner.origin}: Hikyaku's metadata name no authorisation servers"
          {}
        end

        def role(inner)
          source = inner.block.first
          value, alg, *rest = source.arguments
          source.fail!("expected one algorithm at most; without one the kind of key says it") if rest.any?
          source.fail!("expected a value") if value.to_s.empty?
          {"#{inner.name}_key": key_of(source, value), "#{inner.name}_alg": (alg unless alg.to_s.empty?)}.compact
        end

        def key_of(source, value)
          case source.name
          when "jwt" then IssuerBlock.key(value)
          when "jwks_uri" then IssuerBlock.key_set(source, value)
          else source.fail!("expected jwt or jwks_uri")
          end
        end
      end
      private_constant :IssuerBlock

      # Caddy's addresses of a site: a list of hosts and ports, of which those without a host, those on port 80 and those that say http:// are
      # served without TLS. Caddy listens on every address of the machine, whatever the host.
      class ServerName
        SITE = %r{\A(?:(?<scheme>https?)://)?(?<host>\[[\h:.]+\]|[^:/\s]*)(?::(?<port>\d{1,5}))?(?<path>/.*)?\z}i
        private_constant :SITE

        def initialize(text, origin)
          @origin = origin
          sites = text.split(/[\s,]+/).reject(&:empty?)
          @plain, @others = sites.partition { |site| port_of(site) }
        end

        def listen = @plain.first && ":#{port_of(@plain.first)}"

        def doubts
          advice = ", and say with HIKYAKU_LISTEN where Hikyaku listens" unless listen
          tls = @others.map { |site| "#{@origin}: #{site[0, 100]} takes HTTPS, which Hikyaku does not serve: put TLS in front of it#{advice}" }
          more = @plain.map { |site| port_of(site) }.uniq.drop(1).map { |port| "#{@origin}: Hikyaku listens on one port, not on #{port} as well" }
          tls + more
        end

        private

        def port_of(site)
          match = SITE.match(site) or return
          port = match[:port]&.to_i
          return if port && port > 65_535
          return port || 80 if match[:scheme]&.casecmp?("http")
          port if match[:scheme].nil? && port && (port == 80 || (match[:host].empty? && port != 443))
        end
      end
      private_constant :ServerName

      # Where the Go hub keeps its history. In a file, Hikyaku does likewise, in a folder beside that file; in memory, too. Everything else
      # connects several hubs, which Hikyaku does not.
      class Transport
        # The Go hub's own default.
        DEFAULT_PATH = "mercure.db"
        SUFFIX = ".hikyaku"
        IN_MEMORY = %w[local null].freeze
        OPTIONS = %w[path bucket_name cleanup_frequency size].freeze
        NAME = /\A[a-z][a-z0-9_+-]{0,39}\z/
        URL = %r{\A([a-z][a-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?\z}i
        private_constant :DEFAULT_PATH, :SUFFIX, :IN_MEMORY, :OPTIONS, :NAME, :URL

        def self.from_url(text, origin)
          match = URL.match(text.strip) or raise ConfigError, "#{origin}: expected bolt://PATH or local://"
          options = match[4].to_s.split("&").to_h { |pair| pair.split("=", 2).then { |name, value| [name.to_s, value.to_s] } }
          # As the Go hub reads it: a path that begins with a slash, or else the host.
          path = match[3].empty? ? match[2] : match[3]
          new(match[1].downcase, options.merge("path" => path), origin)
        end

        def self.from_directive(directive)
          directive.fail!("expected the name of a transport: bolt or local") unless directive.arguments.size == 1
          options = directive.block.to_a.to_h { |option| [option.name, option.arguments.first.to_s] }
          new(directive.arguments.first, options, directive.origin)
        end

        attr_reader :origin, :folder

        def initialize(name, options, origin)
          @name = name
          @options = options
          @origin = origin
          return if IN_MEMORY.include?(name)
          refuse unless name == "bolt"
          @path = options["path"].to_s.empty? ? DEFAULT_PATH : options["path"]
          @folder = "#{@path}#{SUFFIX}"
        end

        def doubts
          return [] unless folder
          ["#{origin}: the history is kept in the folder #{folder}; what the Go hub has kept in #{@path} is not read", *option_doubts]
        end

        private

        def option_doubts
          given = @options.keys.grep_v("path")
          unknown = given - OPTIONS
          doubts = unknown.map { |option| "#{origin}: #{option.match?(NAME) ? option : "a word"} is not an option of bolt that Hikyaku knows" }
          doubts << "#{origin}: size counts events, and Hikyaku counts bytes: set history (HIKYAKU_HISTORY), which is 64M unless set" if given.include?("size")
          without = given & %w[bucket_name cleanup_frequency]
          doubts << "#{origin}: #{without.join(" and ")} #{(without.size > 1) ? "have" : "has"} no counterpart in Hikyaku" if without.any?
          doubts
        end

        def refuse
          raise ConfigError, "#{origin}: the transport #{"#{@name} " if @name.match?(NAME)}is not one of Hikyaku's, whose hub is one process: take it away, or give bolt " \
            "(history on the disk, as --storage) or local (in memory)"
        end
      end
      private_constant :Transport

      # Durations and sizes as Go programs write them.
      module Units
        SECONDS = {"ns" => 1e-9, "us" => 1e-6, "µs" => 1e-6, "ms" => 1e-3, "s" => 1, "m" => 60, "h" => 3_600, "d" => 86_400}.freeze
        PART = /(\d{1,9}(?:\.\d{1,9})?)(ns|us|µs|ms|s|m|h|d)/
        BYTES = {"" => 1, "k" => 1000, "m" => 1000**2, "g" => 1000**3, "ki" => 1024, "mi" => 1024**2, "gi" => 1024**3}.freeze
        private_constant :SECONDS, :PART, :BYTES

        module_function

        def seconds(text)
          return 0 if text == "0"
          return unless text.match?(/\A(?:#{PART})+\z/o)
          sum = text.scan(PART).sum { |number, unit| number.to_r * SECONDS.fetch(unit).to_r }
          (sum.denominator == 1) ? sum.to_i : sum.to_f.round(6)
        end

        def bytes(text)
          match = text.match(/\A(\d{1,12}(?:\.\d{1,6})?) ?([kmg]?i?)b?\z/i) or return
          factor = BYTES[match[2].downcase] or return
          (match[1].to_r * factor).to_i
        end
      end
      private_constant :Units
    end
  end
end
