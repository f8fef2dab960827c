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
        settings = config(serving: true)
        require_relative "../server"
        require_relative "banner"
        log = Server::Log.new(stderr, level: settings.log_level, format: settings.log_format)
        Server.new(settings, logger: log).run do |server|
          stdout.puts(Banner.new(server.config).to_s)
          stdout.flush
        end
      end

      def print_config
        require_relative "../config/printout"
        stdout.puts(Config::Printout.new(config(serving: true)).to_s)
      end
    end
  end
end
