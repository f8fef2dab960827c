# frozen_string_literal: true

require_relative "client"

module Hikyaku
  module CLI
    # `hikyaku broker`
    class Broker < Command
      include Settings

      summary "Run a broker until TERM or INT: queues, whose messages are kept until somebody has said that they are done with."
      usage "hikyaku broker [OPTION…]"
      examples(
        "hikyaku broker --storage /var/lib/hikyaku",
        "hikyaku broker --storage /var/lib/hikyaku --level synced --socket /run/hikyaku/broker.sock",
        "hikyaku broker --storage /var/lib/hikyaku --listen :4040 --secret-file /etc/hikyaku/secret --metrics 9394",
        "hikyaku broker --socket none --listen 127.0.0.1:4040 --engine ruby"
      )

      PREFIX = "broker-"
      # Of the hub's settings, those that a broker without a hub has, too.
      SHARED = %i[engine storage issuer publisher_key subscriber_key alg publisher_alg subscriber_alg jwks issuers resource_identifier
        max_token_bytes log_level log_format].freeze
      FIRST = %i[engine storage].freeze
      private_constant :PREFIX, :SHARED, :FIRST

      private

      def options(parser)
        configuration(parser)
        own, others = Config::Settings::ALL.partition { |setting| setting.name.start_with?("broker_") }
        shared = others.select { |setting| SHARED.include?(setting.name) }
        first, rest = shared.partition { |setting| FIRST.include?(setting.name) }
        settings(parser, first + own + rest)
      end

      # As in the file and in the environment, but for the prefix.
      def flag(setting) = super.delete_prefix(PREFIX)

      def call
        require_relative "../broker/server"
        require_relative "../server/jit"
        require_relative "../server/log"
        Server::JIT.enable
        settings = config(serving: :broker)
        log = Server::Log.new(stderr, level: settings.log_level, format: settings.log_format)
        Hikyaku::Broker::Server.new(settings, logger: log).run { |server| greet(server) }
      end

      def greet(server)
        settings = server.config
        stdout.puts("Hikyaku #{VERSION} broker is listening on #{server.addresses.join(" and ")}")
        stdout.puts(settings.storage ? "Messages are kept in #{settings.storage}/broker, at level #{server.level} unless their sender says otherwise." :
          "Messages are kept in memory alone, and are gone when it ends: --storage DIR gives it the levels written and synced.")
        stdout.puts("Figures: http://#{server.metrics_address}/metrics") if server.metrics_address
        stdout.flush
      end
    end
  end
end
