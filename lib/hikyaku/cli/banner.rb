# frozen_string_literal: true

require_relative "../cli"

module Hikyaku
  module CLI
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
