# frozen_string_literal: true

require_relative "command"

module Hikyaku
  module CLI
    # `hikyaku proxy`
    class Proxy < Command
      summary "Run a proxy for a browser behind a slow, long link: it pipelines, and fetches what pages contain before the browser asks."
      usage "hikyaku proxy [OPTION…]"
      examples(
        "hikyaku proxy --listen 127.0.0.1:8080",
        "HIKYAKU_PROXY_USERS=ada:secret hikyaku proxy --listen 192.0.2.1:8080",
        "hikyaku proxy --allow 127.0.0.0/8 --all-fields"
      )

      LISTEN = /\A(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]\s]*)):(\d{1,5})\z/
      # Seconds for what is running when it is told to stop.
      GRACE = 10
      private_constant :LISTEN, :GRACE

      private

      def options(parser)
        @host, @port, @allow = "127.0.0.1", 8080, []
        value_option(parser, "--listen HOST:PORT", "Where (127.0.0.1:8080); beyond the loopback with users alone") { |text| listen(text) }
        value_option(parser, "--allow WHERE", "Reach this, too: addresses (127.0.0.0/8), HOST or HOST:PORT. Without it neither this machine nor link-local and metadata addresses are reached; may be repeated") { |text| @allow << text }
        parser.on("--all-fields", *wrap("Send every header field of the browser with every request, as browsers do, and not only those on which the answer depends")) { @all = true }
        parser.on("--no-via", *wrap("Do not say in each message, in the field Via, that there is a proxy: some servers, nginx as it comes among them, do not compress for proxies")) { @no_via = true }
        parser.on("--pass-on", *wrap("Pipeline nothing and fetch nothing ahead, to begin with: to compare")) { @pass_on = true }
        parser.on("--forget", *wrap("Neither use nor keep what is known of servers ($XDG_CACHE_HOME/hikyaku/origins.json, for a day)")) { @forget = true }
        parser.separator("\nThe browser:\n    chromium with 127.0.0.1:8080 as its --proxy-server; what the proxy does is then at http://hikyaku.proxy/")
        parser.separator("\nTERM or INT:\n    nothing new is taken; answers and tunnels that are running have #{GRACE} s to end. A second one ends them at once.")
        parser.separator("\nUsers:\n    HIKYAKU_PROXY_USERS=NAME:PASSWORD[,NAME:PASSWORD…] in the environment, where nobody reads along")
      end

      def call
        require_relative "../http/proxy"
        proxy = HTTP::Proxy.new(host: @host, port: @port, allow: @allow, users: users, prefetch: !@pass_on, all_fields: !!@all, via: !@no_via,
          on_error: ->(text) { stderr.puts("hikyaku: #{CLI.printable(text)}") }, **(@forget ? {memory: nil} : {}))
        %w[INT TERM].each { |signal| trap(signal) { proxy.stop(grace: GRACE) } }
        stdout.puts("Proxy on #{proxy.url}; what it does is at http://hikyaku.proxy/, asked for through it.")
        stdout.flush
        proxy.run do |seconds|
          stdout.puts("Stopping when what is running has ended, in #{seconds} s at most; once more stops it at once.")
          stdout.flush
        end
        0
      rescue SystemCallError, SocketError => error
        raise Failed, "cannot listen on #{@host}, port #{@port}: #{error.message}"
      rescue ConfigError => error
        raise UsageError, "#{error.message}; see #{manual}"
      rescue ArgumentError => error
        raise if error.is_a?(Error)
        raise UsageError, error.message
      end

      def listen(text)
        six, other, port = LISTEN.match(text)&.captures
        raise UsageError, "--listen: expected HOST:PORT, got #{text.inspect}" unless port && port.to_i <= 65_535
        @host = six || (other.empty? ? "0.0.0.0" : other)
        @port = port.to_i
      end

      def users
        env["HIKYAKU_PROXY_USERS"].to_s.split(",").to_h do |pair|
          name, password = pair.split(":", 2)
          raise UsageError, "HIKYAKU_PROXY_USERS: expected NAME:PASSWORD, separated by commas" unless password
          [name, password]
        end
      end
    end
  end
end
