# frozen_string_literal: true

require_relative "errors"
require_relative "../wire"
require_relative "../../version"

module Hikyaku
  module Broker
    class Client
      # What a client says of itself with each connection (docs/protocol.md, section 3).
      class Hello
        NONE = 0
        SECRET = 1
        TOKEN = 2
        # Above them there is room for as many connections as anybody makes.
        EPOCHS = 2**64 - 2**32
        private_constant :NONE, :SECRET, :TOKEN, :EPOCHS

        attr_reader :identity

        def initialize(identity:, known:, secret:, token:, heartbeat:, agent:)
          @identity = identity
          @known = known
          @secret = secret
          @token = token
          @heartbeat = heartbeat
          @agent = agent || "hikyaku #{VERSION} (#{File.basename($PROGRAM_NAME)[0, 60]}, process #{Process.pid})"
          # A connection more each time, beginning with the time: above that of whoever had the identity before. In nanoseconds, as two
          # that begin in the same millisecond would else have the same.
          @epoch = wall
        end

        # The clock here may have been set back, or that of whoever had the identity was ahead: an epoch that is still to come is not
        # of somebody who began later.
        def pass(epoch)
          return false if epoch <= [@epoch, wall].max || epoch >= EPOCHS
          @epoch = epoch
          true
        end

        def known? = @known

        def made_up? = !@known && !@identity.empty?

        def renewable? = @token.respond_to?(:call)

        def frame(max_frame)
          kind, credentials = credentials()
          Wire.hello(max_frame: max_frame, heartbeat: @heartbeat, epoch: @epoch += 1, authentication: kind, identity: @identity,
            credentials: credentials, agent: @agent.byteslice(0, 255).scrub(""))
        end

        def inspect = "#<#{self.class.name} #{@identity}>"

        private

        def wall = Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)

        def credentials
          if @secret then [SECRET, @secret]
          elsif @token then [TOKEN, token]
          else [NONE, ""]
          end
        end

        def token
          renewable? ? @token.call.to_s : @token
        rescue => error
          raise Failure.new("no token can be had: #{error.message}", retryable: true)
        end
      end
    end
  end
end
