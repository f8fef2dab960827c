# frozen_string_literal: true

require_relative "error_stream"

module Hikyaku
  class Server
    # What Puma has to say, as lines of the hub's log. Puma's own writer would print paths with their query, in which 0.x
    # clients send tokens.
    class PumaLog
      attr_reader :stderr

      def initialize(logger)
        @logger = logger
        @stderr = ErrorStream.new(logger)
      end

      def log(text) = @logger.info("puma: #{text}")
      alias_method :write, :log

      def error(text) = @logger.error("puma: #{text}")

      def debug? = @logger.debug?

      def debug(text = nil)
        @logger.debug { "puma: #{block_given? ? yield : text}" }
      end

      # Clients that go away or send nonsense are everyday. After its first sentence Puma repeats what they sent.
      def parse_error(error, _client) = @logger.debug { "puma: malformed request: #{error.message[/\A[^.:\n]{0,100}/]}" }

      def connection_error(error, _client = nil, _text = nil) = @logger.debug { "puma: connection: #{error.class}" }

      def debug_error(error, _client = nil, _text = nil) = @logger.debug { "puma: #{error.class}: #{error.message}" }

      def ssl_error(error, _socket) = @logger.debug { "puma: TLS: #{error.class}" }

      def unknown_error(error, _client = nil, text = "error")
        @logger.error("puma: #{text}: #{error.class}: #{error.message} (#{error.backtrace&.first})")
        @logger.debug { Array(error.backtrace).join(" | ") }
      end
    end
  end
end
