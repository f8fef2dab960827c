# frozen_string_literal: true

require "json"
require "jwt"
require "openssl"
require "securerandom"
require_relative "entrant"

module Bench
  # Access tokens (RFC 9068, RFC 9396) of the only issuer that the hubs trust.
  module Token
    ISSUER = "https://bench.example"
    AUDIENCE = "https://bench.example/.well-known/mercure"
    SECRET = SecureRandom.bytes(32)
    KEY = OpenSSL::PKey::EC.generate("prime256v1")
    KEYS = {"HS256" => SECRET, "ES256" => KEY}.freeze
    ALGORITHMS = KEYS.keys.freeze

    class << self
      # A token that may publish to each topic.
      def publisher = @publisher ||= make("HS256", "publisher", "publish")

      # Different tokens that may read each topic; the same tokens each time.
      def subscribers(alg, count) = (@subscribers ||= {})[[alg, count]] ||= Array.new(count) { |n| make(alg, "reader-#{n}", "subscribe") }

      # The JWK Set (RFC 7517) of both keys.
      def key_set
        JSON.generate(keys: KEYS.map { |alg, key| JWT::JWK.new(key, kid: alg).export(include_private: alg == "HS256").merge(alg: alg) })
      end

      private

      def make(alg, subject, action)
        now = Time.now.to_i
        claims = {iss: ISSUER, sub: subject, aud: AUDIENCE, client_id: "bench", iat: now, exp: now + 86_400, jti: SecureRandom.hex(8),
                  authorization_details: [{type: "https://mercure.rocks/authorization-detail", actions: [action], topics: [{match: "*"}]}]}
        JWT.encode(claims, KEYS.fetch(alg), alg, kid: alg, typ: "at+jwt")
      end
    end
  end

  # Ruby's compiler, which Ruby 3.3 and later enable by themselves.
  module Yjit
    def self.prepare = defined?(RubyVM::YJIT) || raise(Unavailable, "this Ruby has no YJIT")

    def self.versions = {}
  end

  # `hikyaku serve`, or the hub mounted in Puma, with ordinary settings. The load comes from many addresses, so that no limit of
  # connections applies.
  class Hub < Entrant
    PATH = "/.well-known/mercure"
    PARAMETERS = {"exact" => "match", "urlpattern" => "match_urlpattern"}.freeze

    # @param engine [String] "c" or "ruby"
    # @param flags [Array<String>] of `hikyaku serve`
    def initialize(name, title, engine, flags: [], yjit: false, suites: %w[all action_cable codec], doors: ["hub"], **more)
      super(name, title, suites: suites, doors: doors, needs: yjit ? [Yjit] : [], **more)
      @engine = engine
      @flags = flags
      @ruby = [RbConfig.ruby, *("--yjit" if yjit)]
    end

    def command(port, folder, settings)
      options = configuration(folder, settings).map { |name, value| "--#{name.to_s.tr("_", "-")}#{"=#{value}" unless value == true}" }
      [[*@ruby, File.join(ROOT, "exe/hikyaku"), "serve", "--listen", "#{settings[:host]}:#{port}", "--log-level", "warn", *options, *@flags], {}]
    end

    def speech(match: TOPIC, type: "exact", topics: [match], **)
      {subscribe_path: "#{PATH}?#{PARAMETERS.fetch(type)}=#{encoded(match)}", publish_path: PATH,
       publish_prefix: topics.map { |topic| "topic=#{encoded(topic)}&" }.join + "data=", publish_header: "Authorization: Bearer #{Token.publisher}"}
    end

    private

    # Percent-encoded, but for the numbers that the load generator fills in.
    def encoded(text) = URI.encode_www_form_component(text).gsub(/%7B([tn])%7D/, '{\1}')

    def configuration(folder, settings)
      keys = File.join(folder, "keys.json")
      File.write(keys, Token.key_set, perm: 0o600)
      {engine: @engine, anonymous: true, issuer: Token::ISSUER, jwks: "file:#{keys}", resource_identifier: Token::AUDIENCE,
       **settings.slice(:history, :write_timeout)}
    end
  end

  # The hub mounted in Puma, beside an ordinary route: peers/hub.ru.
  class MountedHub < Hub
    def command(port, folder, settings)
      [Entrant.puma(File.join(ROOT, "bench/peers/hub.ru"), settings[:host], port), {"BENCH_HUB" => JSON.generate(configuration(folder, settings))}]
    end
  end

  # `hikyaku broker` with ordinary settings. At level memory it has no storage.
  class HikyakuBroker < Broker
    SECRET = SecureRandom.hex(16)

    def initialize(name, title, engine, yjit: false)
      super(name, title, needs: yjit ? [Yjit] : [])
      @engine = engine
      @ruby = [RbConfig.ruby, *("--yjit" if yjit)]
    end

    def command(port, folder, settings)
      flags = ["--engine=#{@engine}", "--socket=none", "--listen=#{settings[:host]}:#{port}", "--log-level=warn"]
      flags << "--storage=#{folder}" unless settings.fetch(:level, "memory") == "memory"
      flags << "--secret-file=#{File.join(folder, "secret").tap { |path| File.write(path, SECRET, perm: 0o600) }}" if settings[:secret]
      [[*@ruby, File.join(ROOT, "exe/hikyaku"), "broker", *flags], {}]
    end

    def speech(level: levels.first, secret: nil, **) = {program: "queue_load", dialect: "hikyaku", level: level, secret: secret}.compact
  end
end
