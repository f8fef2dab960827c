# frozen_string_literal: true

require "json"
require "securerandom"
require "socket"

module Hikyaku
  module Broker
    class Client
      # A name for a client that was given none: one that nobody else has.
      #
      # Whoever comes with a token may have only those that the token's claim permits (docs/protocol.md, section 11): where it
      # has a pattern for queues of clients, the name is made to fit, else there is none.
      module Identity
        module_function

        def make(token)
          prefix = token ? permitted(token) : ""
          prefix ? "#{prefix}#{Socket.gethostname[0, 60]}-#{Process.pid}-#{SecureRandom.alphanumeric(10)}" : ""
        end

        def permitted(token)
          claims = JSON.parse(token.split(".", 3)[1].to_s.tr("-_", "+/").unpack1("m"))
          patterns = Array(claims.dig("hikyaku", "receive")).grep(String)
          return "" if patterns.include?("*")
          patterns.find { |pattern| pattern.match?(/\A@.*\*\z/) && pattern.bytesize < 100 }&.slice(1..-2)
        rescue JSON::ParserError, TypeError, NoMethodError
          nil
        end
        private_class_method :permitted
      end
    end
  end
end
