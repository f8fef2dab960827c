# frozen_string_literal: true

require_relative "issuer"
require_relative "types"

module Hikyaku
  class Config
    # One line of the table of settings: its names on the command line, in the environment and in the file, its type, its
    # default and what it means.
    class Setting
      # Values of a list in one variable are separated by these.
      SEPARATOR = /[\s,]+/
      private_constant :SEPARATOR

      attr_reader :name, :type, :default, :group, :help, :variables

      def initialize(name, type, default:, group:, help:, singular: nil, secret: false, flag: true, default_text: nil, variables: [])
        @name = name
        @type = type
        @default = default.freeze
        @group = group
        @help = help
        @singular = singular
        @secret = secret
        @flag = flag
        @default_text = default_text
        @variables = flag ? [*names.map { |known| "HIKYAKU_#{known.upcase}" }, *variables].freeze : []
        freeze
      end

      def list? = !@singular.nil?

      def secret? = @secret

      def flag? = @flag

      def switch? = type.switch?

      def names = [name, @singular].compact.uniq

      def flags = names.reverse.map { |known| known.to_s.tr("_", "-") }

      def variable = variables.first

      def default_text
        return @default_text if @default_text
        return "none" if default.nil? || default == []
        list? ? default.map { |value| type.write(value) }.join(", ") : type.write(default)
      end

      def cast(value)
        return list(value).map { |element| type.cast(element) }.freeze if list?
        raise Type::Invalid, "expected one value, not a list" if value.is_a?(Array)
        type.cast(value)
      end

      def split(text) = list? ? text.strip.split(SEPARATOR) : text

      private

      def list(value)
        raise Type::Invalid, "expected a list" if value.is_a?(Hash)
        value.is_a?(Array) ? value : [value]
      end
    end

    # The table of all settings. Flags, variables, keys of the file, `--help` and docs/configuration.md come from it.
    module Settings
      # The secret that development images of Mercure hubs use: everybody knows it.
      DEVELOPMENT_SECRET = "!ChangeThisMercureHubJWTSecretKey!"
      # What developer mode changes of the defaults; whatever is given explicitly counts more.
      DEVELOPMENT = {anonymous: true, subscriptions: true, legacy: true}.freeze

      KIB = 1024
      MIB = 1024 * KIB
      private_constant :KIB, :MIB

      ALL = [
        ["Process", [
          [:listen, Types.address, "127.0.0.1:3030", "Where to listen; :PORT is every address, PORT alone is 127.0.0.1, port 0 is any free port"],
          [:path, Types.url_path, "/.well-known/mercure", "Path of the hub"],
          [:engine, Types.choice("c", "ruby"), "c", "Engine of the hub and the broker: in C, or in Ruby where no compiler is; unless it is set, --dev takes the one in Ruby where the other is not there"],
          [:handover, Types.text("PATH", "the path of a Unix socket", max_bytes: 107), nil, "Unix socket on which other processes hand connections over; only with the engine in C"],
          [:dev, Types.switch, false, "Developer mode: the page at PATH/ui/, anonymous, subscriptions, legacy and, when no key is given, a secret that everybody knows"],
          [:threads, Types.count(1..1_000), 5, "Threads that answer requests; subscribers hold none"],
          [:metrics, Types.switch, false, "Show figures for Prometheus at /metrics"]
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
          [:io_uring, Types.switch, true, "Deliver to many subscribers in one system call where the kernel has io_uring and allows it; only with the engine in C"],
          [:history, Types.bytes((64 * KIB)..(64 * KIB * MIB)), 64 * MIB, "Bytes of the history from which readers catch up"],
          [:slow_readers, Types.slow_reader, [], "What becomes of readers of topics that match PATTERN when the history has passed them: gap (told, and moved on) or close; the first that matches counts, else gap", {singular: :slow_reader}]
        ]],
        ["Limits", [
          [:max_connections, Types.count(1..10_000_000), nil, "Subscribers in total",
            {default_text: "the files that the process may open, less a reserve"}],
          [:max_connections_per_address, Types.count(1..10_000_000), 1_000, "Subscribers of one client: of one IPv4 address, or of one IPv6 /64",
            {default_text: "1000, and any number of this machine itself"}],
          [:max_request_bytes, Types.bytes(KIB..(1024 * MIB)), MIB, "Bytes of a request's body"],
          [:max_topics, Types.count, 1_000, "Topics of one update"],
          [:max_topic_bytes, Types.bytes(1..MIB), 4_096, "Bytes of a topic"],
          [:max_id_bytes, Types.bytes(1..64 * KIB), 1_024, "Bytes of an event's id"],
          [:max_type_bytes, Types.bytes(1..64 * KIB), 256, "Bytes of an event's type"],
          [:max_matchers, Types.count, 100, "Matchers of one subscriber"],
          [:max_pattern_bytes, Types.bytes(1..MIB), 4_096, "Bytes of a matcher"],
          [:max_pattern_instructions, Types.count(16..65_536), 4_096, "Instructions that a pattern may compile to, behind the fixed text that it begins with"],
          [:max_pattern_work, Types.count(256..100_000_000), 65_536,
            "Work of compiling the patterns of one request: each byte and each instruction of those that are not in use counts 1; readers without a token may have a quarter"],
          [:max_pattern_cost, Types.count(32..100_000_000), 4_096,
            "Cost of the patterns of one subscriber, in steps for each byte of a topic; readers without a token may have a quarter"],
          [:max_pattern_cost_per_address, Types.count(32..100_000_000), 8_192, "The same of all patterns that came from one client address and are in use",
            {default_text: "8192, and any number of this machine itself"}],
          [:max_pattern_cost_per_beginning, Types.count(32..100_000_000), 16_384, "The same of patterns with a common fixed beginning: what a topic is compared with when it is published first",
            {default_text: "16384; of the engine in Ruby 512"}],
          [:max_pattern_cost_total, Types.count(32..1_000_000_000), 65_536, "The same of all patterns in use"],
          [:max_grant_bytes, Types.bytes(0..(64 * 1024 * MIB)), 64 * MIB, "Bytes of the decisions that the engine in C remembers, for clients that come again, whether they are there or not"],
          [:max_token_bytes, Types.bytes(64..MIB), 16_384, "Bytes of a token"],
          [:max_token_details, Types.count, 100, "Authorization details of one token"],
          [:max_token_topics, Types.count, 100, "Topics of one authorization detail"]
        ]],
        ["Storage", [
          [:storage, Types.folder, nil, "Folder in which the hub's history (DIR/hub) and the broker's messages (DIR/broker) are kept; none is memory alone"],
          [:storage_age, Types.seconds(0..3_153_600_000), 0, "Seconds after which an update is not kept any more; 0 is never: only the bytes of the history count"],
          [:storage_level, Types.choice("written", "synced"), "written", "What a publish to the hub waits for: written survives the process, synced a loss of power"]
        ]],
        ["Broker", [
          [:broker, Types.switch, false, "Run a broker beside the hub, in the same process"],
          [:broker_socket, Types.text("PATH", "the path of a Unix socket, or none", max_bytes: 107), nil,
            "Unix socket of the broker, open to the user of the process alone; none is no such socket", {default_text: "where clients look for it"}],
          [:broker_listen, Types.address, [], "Where the broker listens, too: on this machine, or anywhere when clients must say who they are", {singular: :broker_listen}],
          [:broker_secret_file, Types.text("PATH", "the path of a file"), nil, "File with the secret that clients of the broker must know"],
          [:broker_metrics, Types.address, nil, "Where figures for Prometheus are shown over HTTP, at /metrics"],
          [:broker_level, Types.choice("memory", "written", "synced"), nil, "What the acknowledgement of a message waits for, where its sender leaves that open",
            {default_text: "written with storage, else memory"}],
          [:broker_lease, Types.seconds(0.1..604_800), 30, "Seconds that a receiver has for a message, where it does not say"],
          [:broker_max_lease, Types.seconds(0.1..604_800), 43_200, "Seconds that a receiver may ask for"],
          [:broker_max_failures, Types.count(1..65_535), 20, "Rejections after which a message is a dead letter"],
          [:broker_max_crashes, Types.count(1..65_535), 3, "Receivers that vanish with a message before it is a dead letter"],
          [:broker_drain, Types.seconds(0..3_600), 10, "Seconds that receivers have to finish what is out when the broker stops"]
        ]],
        ["Broker's limits", [
          [:broker_max_memory, Types.bytes(MIB..(MIB * MIB)), 1024 * MIB, "Bytes that messages take in memory, those on the disk too (64 for each; 512 with the engine in Ruby); beyond, messages are refused"],
          [:broker_max_storage, Types.bytes(MIB..(MIB * MIB)), nil, "Bytes in DIR/broker; beyond, messages are refused", {default_text: "what the disk has"}],
          [:broker_segment_bytes, Types.bytes((64 * KIB)..(1024 * MIB)), 32 * MIB, "Bytes of a file in DIR/broker"],
          [:broker_max_queue_messages, Types.count, nil, "Messages of one queue", {default_text: "any number"}],
          [:broker_max_queue_bytes, Types.bytes(KIB..(MIB * MIB)), nil, "Bytes of the messages of one queue", {default_text: "any number"}],
          [:broker_max_queues, Types.count(1..100_000_000), 100_000, "Queues in total"],
          [:broker_max_identities, Types.count(1..10_000_000), nil, "Identities whose numbered messages are remembered; those seen least recently are forgotten first",
            {default_text: "10000, or as many as fit into half a segment"}],
          [:broker_max_connections, Types.count(1..10_000_000), 10_000, "Clients of the broker in total",
            {default_text: "10000, or fewer where the process may not open so many files"}],
          [:broker_max_subscriptions, Types.count(1..65_535), 1_024, "Subscriptions of one client"],
          [:broker_max_frame_bytes, Types.bytes((4 * KIB)..(16 * MIB)), MIB, "Bytes of a message with all that goes with it"],
          [:broker_max_unanswered, Types.count(1..1_000_000), 4_096, "Messages that a client may have sent without an answer"],
          [:broker_max_unanswered_bytes, Types.bytes((64 * KIB)..(1024 * MIB)), 8 * MIB, "The same in bytes"],
          [:broker_write_timeout, Types.seconds(1..86_400), 60, "Seconds without progress of pending bytes after which a client is closed"]
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

      def [](name) = BY_NAME.fetch(name)

      def find(key) = BY_KEY[key.to_s]

      def keys = BY_KEY.keys
    end
  end
end
