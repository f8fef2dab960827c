# frozen_string_literal: true

require_relative "error_stream"

module Hikyaku
  class Server
    # What Puma has to say, as lines of the hub's log. Puma's own writer would print paths with their query, in which 0.x
    # clients send tokens.
    class PumaLog
      # @return [ErrorStream]
      attr_reader :stderr

      # @param logger [Logger]
      def initialize(logger)
        @logger = logger
        @stderr = ErrorStream.new(logger)
      end

      # @return [void]
      def log(text) = @logger.info("puma: #{text}")
      alias_method :write, :log

      # @return [void]
      def error(text) = @logger.error("puma: #{text}")

      # @return [Boolean]
      def debug? = @logger.debug?

      # @return [void]
      def debug(text = nil)
        @logger.debug { "puma: #{block_given? ? yield : text}" }
      end

      # Clients that go away or send nonsense are everyday. After its first sentence Puma repeats what they sent.
      #
      # @return [void]
      def parse_error(error, _client) = @logger.debug { "puma: malformed request: #{error.message[/\A[^.:\n]{0,100}/]}" }

      # @return [void]
      def connection_error(error, _client = nil, _text = nil) = @logger.debug { "puma: connection: #{error.class}" }

      # @return [void]
      def debug_error(error, _client = nil, _text = nil) = @logger.debug { "puma: #{error.class}: #{error.message}" }

      # @return [void]
      def ssl_error(error, _socket) = @logger.debug { "puma: TLS: #{error.class}" }

      # @return [void]
      def unknown_error(error, _client = nil, text = "error")
        @logger.error("puma: #{text}: #{error.class}: #{error.message} (#{error.backtrace&.first})")
        @logger.debug { Array(error.backtrace).join(" | ") }
      end
    end
  end
end
