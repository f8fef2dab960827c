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

      # @param io_uring [Boolean] false: as in a container that forbids it
      # @param yjit [Boolean] as Ruby 3.3 and later have it by themselves, and earlier ones when they are told
      def initialize(engine, io_uring: true, yjit: false)
        super(engine, "hikyaku-#{engine}#{"-send" unless io_uring}#{"-yjit" if yjit}",
          "Hikyaku, #{engine.capitalize} engine#{", without io_uring" unless io_uring}#{", YJIT" if yjit}")
        @io_uring = io_uring
        @yjit = yjit
      end

      def command(port, folder, settings)
        raise Unavailable, "this Ruby has no YJIT" if @yjit && !defined?(RubyVM::YJIT)
        flags = configuration(folder, settings).map { |name, value| (value == true) ? flag(name) : "#{flag(name)}=#{value}" }
        flags << "--no-io-uring" unless @io_uring
        [[RbConfig.ruby, *("--yjit" if @yjit), File.join(ROOT, "exe/hikyaku"), "serve", "--listen", "#{settings.fetch(:host, LOOPBACK)}:#{port}", "--log-level", "warn", *flags], {}]
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
