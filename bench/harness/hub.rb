# frozen_string_literal: true

require "json"
require "rbconfig"
require_relative "entrant"
require_relative "token"

module Bench
  # Hikyaku, by engine. Ordinary settings, and connections that come from many addresses, so that no limit stands in the
  # way. It trusts both keys of {Token}, for publishers and for subscribers.
  class Hub < Entrant
    ROOT = File.expand_path("../..", __dir__)
    PATH = "/.well-known/mercure"
    PARAMETERS = {"exact" => "match", "urlpattern" => "match_urlpattern"}.freeze

    # @param engine [String] "c" or "ruby"
    def initialize(engine, name, title)
      super(name, title)
      @engine = engine
    end

    def speech(match: TOPIC, type: "exact", topics: [match], **)
      {subscribe_path: "#{PATH}?#{PARAMETERS.fetch(type)}=#{encoded(match)}", publish_path: PATH, publish_prefix: form(topics),
       publish_header: "Authorization: Bearer #{Token.publisher}"}
    end

    private

    # @return [Hash{Symbol => Object}] by the names of the configuration
    def configuration(folder, settings)
      keys = File.join(folder, "keys.json")
      File.write(keys, Token.key_set, perm: 0o600)
      {engine: @engine, anonymous: true, issuer: Token::ISSUER, jwks: "file:#{keys}", resource_identifier: Token::AUDIENCE,
       **settings.slice(:history, :write_timeout)}
    end

    # `hikyaku serve`.
    class Standalone < Hub
      def suites = [Suite::HUB, Suite::ACTION_CABLE, Suite::CODEC]

      def initialize(engine)
        super(engine, "hikyaku-#{engine}", "Hikyaku, #{engine.capitalize} engine")
      end

      def command(port, folder, settings)
        flags = configuration(folder, settings).map { |name, value| (value == true) ? flag(name) : "#{flag(name)}=#{value}" }
        [[RbConfig.ruby, File.join(ROOT, "exe/hikyaku"), "serve", "--listen", "#{settings.fetch(:host, LOOPBACK)}:#{port}", "--log-level", "warn", *flags], {}]
      end

      private

      def flag(name) = "--#{name.to_s.tr("_", "-")}"
    end

    # In Puma, beside an ordinary route: peers/hub.ru.
    class Mounted < Hub
      THREADS = 5

      def initialize(engine)
        super(engine, "puma-#{engine}", "Hikyaku in Puma, #{engine.capitalize} engine")
      end

      def command(port, folder, settings)
        [[RbConfig.ruby, Gem.bin_path("puma", "puma"), "--bind", "tcp://#{settings.fetch(:host, LOOPBACK)}:#{port}", "--threads", "#{THREADS}:#{THREADS}",
          "--environment", "production", "--quiet", File.join(ROOT, "bench/peers/hub.ru")],
          {"BENCH_HUB" => JSON.generate(configuration(folder, settings))}]
      end
    end
  end
end
