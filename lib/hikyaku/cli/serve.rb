# frozen_string_literal: true

require_relative "command"
require_relative "settings"

module Hikyaku
  module CLI
    # `hikyaku serve`
    class Serve < Command
      include Settings

      summary "Run a hub until TERM or INT."
      usage "hikyaku serve [OPTION…]"
      examples(
        "hikyaku serve --dev",
        "hikyaku serve --listen :8080 --publisher-key file:publisher.pem --subscriber-key file:subscriber.pem --resource-identifier https://hub.example.com/.well-known/mercure",
        "hikyaku serve --listen unix:/run/hikyaku/hub.sock --config /etc/hikyaku.yml",
        "hikyaku serve --dev --broker --storage var/hikyaku",
        "hikyaku serve --config hub.yml --print-config"
      )

      private

      def options(parser)
        configuration(parser)
        parser.on("--print-config", *wrap("Print the settings that count, where they come from, and no secrets")) { @print = true }
        settings(parser, Config::Settings::ALL)
      end

      def call
        return print_config if @print
        require_relative "../server"
        require_relative "../server/jit"
        Server::JIT.enable
        parent = Server::ParentPipe.inherited(env)
        return serve_for(parent) if parent
        require_relative "banner"
        serve(config(serving: true)) do |server|
          stdout.puts(Banner.new(server.config, broker: server.broker&.addresses).to_s)
          stdout.flush
        end
      end

      def serve(settings, logger: log(settings), &ready)
        Server.new(settings, logger: logger).run(&ready)
      end

      def log(settings) = Server::Log.new(stderr, level: settings.log_level, format: settings.log_format)

      # As the hub of another process, from which the settings come, and which says what went wrong.
      def serve_for(parent)
        given = Config::Sources.from_code(parent.settings).merge(Config::Sources.from_flags(@flags))
        config = Config.build(given, serving: true)
        logger = log(config)
        config = Web::EngineChoice.settle(config, logger: logger)
        config = config.with(handover: parent.handover) if config.engine == "c"
        serve(config, logger: logger) { |_, stop| parent.ready(handover: !config.handover.nil?, &stop) }
      rescue Error => error
        parent.failed(error.message)
        1
      ensure
        parent&.close
      end

      def print_config
        require_relative "../config/printout"
        stdout.puts(Config::Printout.new(config(serving: true)).to_s)
        config.doubts.each { |doubt| stdout.puts("# #{doubt}") }
        0
      end
    end
  end
end
