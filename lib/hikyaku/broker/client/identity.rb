# frozen_string_literal: true

require "json"
require "securerandom"
require "socket"
require_relative "errors"
require_relative "../wire"
require_relative "../../version"

module Hikyaku
  module Broker
    class Client
      # The identity, epoch and credentials with which a client connects (docs/protocol.md, section 3).
      class Identity
        NONE = 0
        SECRET = 1
        TOKEN = 2
        # An epoch at or above this limit leaves too little room for the connections that follow.
        MAX_EPOCH = 2**64 - 2**32
        private_constant :NONE, :SECRET, :TOKEN, :MAX_EPOCH

        # @return [String] empty: the client has none
        attr_reader :name

        class << self
          # A unique name for a client that was given none. A token may permit certain names only (docs/protocol.md, section 11): the
          # name begins with a permitted prefix, or is empty where there is no such prefix.
          def generate(token)
            prefix = token ? permitted_prefix(token) : ""
            prefix ? "#{prefix}#{Socket.gethostname[0, 60]}-#{Process.pid}-#{SecureRandom.alphanumeric(10)}" : ""
          end

          private

          def permitted_prefix(token)
            claims = JSON.parse(token.split(".", 3)[1].to_s.tr("-_", "+/").unpack1("m"))
            patterns = Array(claims.dig("hikyaku", "receive")).grep(String)
            return "" if patterns.include?("*")
            patterns.find { |pattern| pattern.match?(/\A@.*\*\z/) && pattern.bytesize < 100 }&.slice(1..-2)
          rescue JSON::ParserError, TypeError, NoMethodError
            nil
          end
        end

        def initialize(name, secret:, token:, heartbeat:, agent:)
          @secret = secret
          @token = token
          @generated = name.nil?
          @name = name || self.class.generate(refreshable? ? token.call : token)
          @heartbeat = heartbeat
          @agent = agent || "hikyaku #{VERSION} (#{File.basename($PROGRAM_NAME)[0, 60]}, process #{Process.pid})"
          # The epoch rises with each connection and starts at the wall clock, so that it is above that of any earlier client with this
          # identity. Nanoseconds keep two clients apart that start in the same millisecond.
          @epoch = wall_clock
        end

        # Continues from the epoch of the client that has fenced this one. An epoch in the future does not come from a later client: the
        # clock of this host was set back, or that of the other host is ahead.
        #
        # @return [Boolean] false: a later client has the identity
        def advance_past(epoch)
          return false if epoch <= [@epoch, wall_clock].max || epoch >= MAX_EPOCH
          @epoch = epoch
          true
        end

        # The program chose the name, so that an earlier client may have used its numbers.
        def chosen? = !@generated

        def forgettable? = @generated && !none?

        def none? = @name.empty?

        # The next connection may get another token.
        def refreshable? = @token.respond_to?(:call)

        # @return [String] HELLO for the next connection
        def hello(max_frame)
          kind, credentials = credentials()
          Wire.hello(max_frame: max_frame, heartbeat: @heartbeat, epoch: @epoch += 1, authentication: kind, identity: @name,
            credentials: credentials, agent: @agent.byteslice(0, 255).scrub(""))
        end

        def inspect = "#<#{self.class.name} #{@name}>"

        private

        def wall_clock = Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)

        def credentials
          if @secret then [SECRET, @secret]
          elsif @token then [TOKEN, current_token]
          else [NONE, ""]
          end
        end

        def current_token
          refreshable? ? @token.call.to_s : @token
        rescue => error
          raise Failure.new("the client's token: callable raised #{error.class}: #{error.message}", retryable: true)
        end
      end
    end
  end
end
