# frozen_string_literal: true

require_relative "client"

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
        parent = Server::Sidecar::ParentPipe.inherited(env)
        return serve_for(parent) if parent
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

    # What `serve` says when the hub listens; in developer mode with lines to paste.
    class Banner
      TOPIC = "https://example.com/books/1"
      # Seconds of the token in the curl line: a day with the secret that everybody knows, else an hour.
      LIFETIMES = {true => 86_400, false => 3600}.freeze
      private_constant :TOPIC, :LIFETIMES

      def initialize(config, broker: nil)
        @config = config
        @broker = broker
        @url = config.address.url(config.path)
      end

      def to_s
        place = @config.address.unix? ? @config.listen : @url
        lines = ["Hikyaku #{VERSION} is listening on #{place}#{", its broker on #{@broker.join(" and ")}" if @broker}"]
        lines += developer if @config.dev
        lines.join("\n")
      end

      private

      def developer
        lines = [""]
        lines += ["Open the page:", "  #{@url}/ui/", ""] unless @config.address.unix?
        lines + ["Subscribe:", "  #{subscribe}", "", "Publish:", "  #{publish}", "", "Stop with Ctrl-C."]
      end

      def subscribe
        token = ("-H 'Authorization: Bearer #{bearer(:subscriber)}' " unless @config.anonymous)
        "curl -N #{socket}#{token}'#{@url}?match=*'"
      end

      def publish
        "curl #{socket}-d topic=#{TOPIC} -d data=Hello -H 'Authorization: Bearer #{bearer(:publisher)}' #{@url}"
      end

      def socket = ("--unix-socket '#{@config.address.path}' " if @config.address.unix?)

      def bearer(role)
        require_relative "../web/token_maker"
        grants = {((role == :publisher) ? :publish : :subscribe) => ["*"]}
        Web::TokenMaker.for(@config, role: role).call(**grants, expires_in: LIFETIMES.fetch(@config.development_secret?))
      rescue ConfigError
        "TOKEN" # there is no key here that signs
      end
    end
  end
end
