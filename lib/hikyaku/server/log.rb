# frozen_string_literal: true

require "json"
require "logger"
require "time"

module Hikyaku
  class Server
    # The log of the standalone process: one line for each entry, as text for people or as JSON for programs. What looks
    # like a token is taken out, and what a terminal would obey is escaped.
    class Log < ::Logger
      # JWTs, `Bearer …` and the query component in which 0.x clients send theirs.
      TOKENS = /\beyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_.-]+|(\bBearer |\b(?:authorization|access_token)=)[^&\s"',]+/i
      HIDDEN = "[hidden]"
      private_constant :TOKENS, :HIDDEN

      def initialize(io, level: "info", format: "text")
        super(io, level: level, formatter: (format == "json") ? method(:json) : method(:text))
      end

      private

      def text(severity, time, _program, message)
        "#{stamp(time)} #{severity.ljust(5)} #{clean(message)}\n"
      end

      def json(severity, time, _program, message)
        JSON.generate(time: stamp(time), level: severity.downcase, message: clean(message)) << "\n"
      end

      def stamp(time) = time.utc.iso8601(3)

      def clean(message)
        message = message.is_a?(Exception) ? "#{message.class}: #{message.message}" : message.to_s
        message = message.encode(Encoding::UTF_8, invalid: :replace, undef: :replace) unless message.encoding == Encoding::UTF_8
        message.scrub("?").gsub(TOKENS) { "#{$1}#{HIDDEN}" }.gsub(/[\p{Cntrl}\p{Cf}]/) { |character| format("\\u%04x", character.ord) }
      end
    end

    # The Rack environment's `rack.errors`: what is written there becomes lines of the hub's log.
    class ErrorStream
      def initialize(logger)
        @logger = logger
      end

      def puts(*lines) = lines.flatten.each { |line| @logger.error(line.to_s.chomp) }

      def write(*texts)
        puts(*texts)
        texts.sum { |text| text.to_s.bytesize }
      end

      def flush = self
    end

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
