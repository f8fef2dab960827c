# frozen_string_literal: true

require_relative "issuer"
require_relative "setting"
require_relative "types"

module Hikyaku
  class Config
    # The table of all settings. Flags, variables, keys of the file, `--help` and docs/configuration.md come from it.
    module Settings
      # The secret that development images of Mercure hubs use: everybody knows it.
      DEVELOPMENT_SECRET = "!ChangeThisMercureHubJWTSecretKey!"
      # What developer mode changes of the defaults; whatever is given explicitly counts more.
      DEVELOPMENT = {anonymous: true, subscriptions: true, legacy: true}.freeze

      KIB = 1024
      MIB = 1024 * KIB
      private_constant :KIB, :MIB

      # @return [Array<Setting>]
      ALL = [
        ["Process", [
          [:listen, Types.address, "127.0.0.1:3030", "Where to listen; :PORT is every address, PORT alone is 127.0.0.1, port 0 is any free port"],
          [:path, Types.url_path, "/.well-known/mercure", "Path of the hub"],
          [:engine, Types.choice("ruby", "c"), "ruby", "Engine of the hub; only ruby exists so far"],
          [:dev, Types.switch, false, "Developer mode: the page at PATH/ui/, anonymous, subscriptions, legacy and, when no key is given, a secret that everybody knows"],
          [:threads, Types.count(1..1_000), 5, "Threads that answer requests; subscribers hold none"]
        ]],
        ["Tokens", [
          [:issuer, Issuer::IDENTIFIER, "hikyaku", "The iss of accepted tokens: a stable name or URL of who signs them"],
          [:publisher_key, Types.key, nil, "Key that verifies publishers' tokens: a secret, a PEM text, a JWK Set, file:PATH or the https URL of a JWK Set",
            {secret: true, variables: %w[MERCURE_PUBLISHER_JWT_KEY]}],
          [:subscriber_key, Types.key, nil, "Key that verifies subscribers' tokens: a secret, a PEM text, a JWK Set, file:PATH or the https URL of a JWK Set",
            {secret: true, variables: %w[MERCURE_SUBSCRIBER_JWT_KEY]}],
          [:alg, Issuer::ALGORITHM, nil, "Algorithm of the tokens: #{Types::SIGNATURES.join(", ")}",
            {default_text: "HS256 for a secret, else by the kind of key"}],
          [:publisher_alg, Issuer::ALGORITHM, nil, "Algorithm of publishers' tokens, where it differs",
            {default_text: "as alg", variables: %w[MERCURE_PUBLISHER_JWT_ALG]}],
          [:subscriber_alg, Issuer::ALGORITHM, nil, "Algorithm of subscribers' tokens, where it differs",
            {default_text: "as alg", variables: %w[MERCURE_SUBSCRIBER_JWT_ALG]}],
          [:jwks, Types.key_set, nil, "JWK Set that verifies tokens of both roles: file:PATH or an https URL"],
          [:issuers, Type.new("LIST", "a list of mappings") { |value| Issuer.cast(value) }, [],
            "Further issuers: a list of mappings with the keys #{Issuer::NAMES.join(", ")}", {singular: :issuers, flag: false}],
          [:resource_identifier, Types.uri, nil, "The aud of accepted tokens: the hub's public URL",
            {default_text: "http://HOST:PORT/PATH of listen and path"}],
          [:cookie_name, Types.cookie_name, "__Secure-mercure_access_token", "Cookie in which browsers send their token"]
        ]],
        ["Access", [
          [:anonymous, Types.switch, false, "Let readers without a token receive public updates"],
          [:subscriptions, Types.switch, false, "Publish subscription events and answer the subscription API"],
          [:legacy, Types.switch, false, "Accept clients and tokens of Mercure 0.x beside those of draft 08"],
          [:cors_origins, Types.origin, [], "Origin whose pages may read from the hub", {singular: :cors_origin}],
          [:publish_origins, Types.origin, [], "Origin whose pages may publish with a cookie", {singular: :publish_origin}],
          [:trusted_proxies, Types.network, [], "Address or network of proxies whose X-Forwarded-For is believed", {singular: :trusted_proxy}]
        ]],
        ["Streams", [
          [:heartbeat, Types.seconds(0..3600), 15, "Seconds of silence after which a comment is sent; 0 is never"],
          [:write_timeout, Types.seconds(1..86_400), 60, "Seconds without progress of pending bytes after which a stream is closed"],
          [:max_lifetime, Types.seconds(0..31_536_000), 3600, "Seconds after which a stream is closed, to come back with its token checked again; 0 is never"],
          [:history, Types.bytes((64 * KIB)..(64 * KIB * MIB)), 64 * MIB, "Bytes of the history from which readers catch up"],
          [:slow_readers, Types.slow_reader, [], "What becomes of readers of topics that match PATTERN when the history has passed them: gap (told, and moved on) or close; the first that matches counts, else gap", {singular: :slow_reader}]
        ]],
        ["Limits", [
          [:max_connections, Types.count(1..10_000_000), nil, "Subscribers in total",
            {default_text: "the files that the process may open, less a reserve"}],
          [:max_connections_per_address, Types.count(1..10_000_000), 1_000, "Subscribers of one client address"],
          [:max_request_bytes, Types.bytes(KIB..(1024 * MIB)), MIB, "Bytes of a request's body"],
          [:max_topics, Types.count, 1_000, "Topics of one update"],
          [:max_topic_bytes, Types.bytes(1..MIB), 4_096, "Bytes of a topic"],
          [:max_id_bytes, Types.bytes(1..64 * KIB), 1_024, "Bytes of an event's id"],
          [:max_type_bytes, Types.bytes(1..64 * KIB), 256, "Bytes of an event's type"],
          [:max_matchers, Types.count, 100, "Matchers of one subscriber"],
          [:max_pattern_bytes, Types.bytes(1..MIB), 4_096, "Bytes of a matcher"],
          [:max_token_bytes, Types.bytes(64..MIB), 16_384, "Bytes of a token"],
          [:max_token_details, Types.count, 100, "Authorization details of one token"],
          [:max_token_topics, Types.count, 100, "Topics of one authorization detail"]
        ]],
        ["Log", [
          [:log_level, Types.choice("debug", "info", "warn", "error"), "info", "The least important lines that are written"],
          [:log_format, Types.choice("text", "json"), "text", "How a line is written"]
        ]]
      ].flat_map do |group, rows|
        rows.map { |name, type, default, help, more| Setting.new(name, type, default: default, group: group, help: help, **(more || {})) }
      end.freeze

      BY_NAME = ALL.to_h { |setting| [setting.name, setting] }.freeze
      BY_KEY = ALL.flat_map { |setting| setting.names.map { |name| [name.to_s, setting] } }.to_h.freeze
      private_constant :BY_NAME, :BY_KEY

      module_function

      # @param name [Symbol]
      # @return [Setting]
      # @raise [KeyError]
      def [](name) = BY_NAME.fetch(name)

      # @param key [String, Symbol] as the file has it
      # @return [Setting, nil]
      def find(key) = BY_KEY[key.to_s]

      # @return [Array<String>] all keys of the file
      def keys = BY_KEY.keys
    end
  end
end
