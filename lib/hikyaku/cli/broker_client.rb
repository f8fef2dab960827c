# frozen_string_literal: true

require_relative "command"

module Hikyaku
  module CLI
    # What commands share that talk to a broker: where it is, who one is, how queues are written.
    class BrokerClient < Command
      # Seconds that a command waits for the end of its connection.
      PATIENCE = 5
      # What the protocol can say: 32 bits of milliseconds.
      MOST_SECONDS = 4_294_966
      private_constant :PATIENCE, :MOST_SECONDS

      private

      def broker_options(parser)
        parser.separator("\nBroker:")
        value_option(parser, "--connect ADDRESS", "unix:PATH or tcp://HOST:PORT (HIKYAKU_BROKER_ADDRESS; else the socket where a broker listens unless told otherwise)") { |text| @address = text }
        value_option(parser, "--secret-file PATH", "File with the broker's secret (HIKYAKU_BROKER_SECRET_FILE)") { |path| @secret_file = path }
        value_option(parser, "--token TOKEN", "Access token (HIKYAKU_BROKER_TOKEN)") { |token| @token = token }
        value_option(parser, "--identity NAME", "Under which others address this client; nobody else may have it at the same time") { |name| @identity = name }
      end

      def connect(identity: nil, **options)
        require_relative "../broker/client"
        address = @address ? Hikyaku::Broker::Address.parse(@address) : Hikyaku::Broker::Address.default(env)
        client = Hikyaku::Broker::Client.open(address, identity: @identity || identity, agent: "hikyaku #{self.class.name[/\w+\z/].downcase} (process #{Process.pid})",
          open_timeout: 0, **credentials, **options)
        begin
          yield client
        ensure
          client.close(timeout: PATIENCE)
        end
      rescue ArgumentError => error
        raise if error.is_a?(Error)
        raise UsageError, error.message
      end

      def credentials
        return {token: @token} if @token
        path = @secret_file || given(env["HIKYAKU_BROKER_SECRET_FILE"])
        require_relative "../config/secret_file"
        return {secret: Config::SecretFile.read(path, where: "#{path}: the secret")} if path
        token = given(env["HIKYAKU_BROKER_TOKEN"])
        token ? {token: token} : {}
      rescue ConfigError => error
        raise UsageError, error.message
      end

      def given(text) = (text unless text.to_s.strip.empty?)

      # `@ann` is the queue of the client ann, as in the patterns of tokens.
      def queue(text)
        raise UsageError, "give a QUEUE; see #{self.class.usage[/\Ahikyaku \w+/]} --help" if text.to_s.empty?
        text.start_with?("@") ? [text.delete_prefix("@"), :client] : [text, :queue]
      end

      def whole(option, text, least: 1)
        number = text.to_i if text.match?(/\A\d{1,18}\z/)
        return number if number && number >= least
        raise UsageError, "#{option}: expected a whole number from #{least}, got #{text.inspect}"
      end

      def seconds(option, text)
        number = text.to_f if text.match?(/\A\d{1,7}(?:\.\d{1,6})?\z/)
        return number if number && number <= MOST_SECONDS
        raise UsageError, "#{option}: expected a number of seconds from 0 to #{MOST_SECONDS}, got #{text.inspect}"
      end

      def json(document)
        require "json"
        stdout.puts(JSON.generate(document))
        stdout.flush
      end

      def duration(milliseconds)
        seconds = milliseconds.to_i / 1000.0
        if seconds < 1 then "#{milliseconds.to_i} ms"
        elsif seconds < 120 then "#{seconds.round(1)} s"
        elsif seconds < 7200 then "#{(seconds / 60).round} min"
        elsif seconds < 172_800 then "#{(seconds / 3600).round} h"
        else "#{(seconds / 86_400).round} d"
        end
      end

      def table(rows)
        widths = rows.transpose.map { |column| column.map { |cell| cell.to_s.size }.max }
        rows.each do |row|
          line = row.each_with_index.map { |cell, index| index.zero? ? cell.to_s.ljust(widths[index]) : cell.to_s.rjust(widths[index]) }
          stdout.puts(line.join("  ").rstrip)
        end
        stdout.flush
      end

      def plain(text) = CLI.printable(text.to_s)
    end
  end
end
