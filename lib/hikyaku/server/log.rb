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
  end
end
