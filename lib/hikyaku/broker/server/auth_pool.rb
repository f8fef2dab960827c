# frozen_string_literal: true

require_relative "authenticator"

module Hikyaku
  module Broker
    class Server
      # Authenticates clients in a few threads, so that no client waits while the keys of another one's issuer are fetched.
      class AuthPool
        THREADS = 2
        # Requests that wait; further ones are refused.
        MAX_WAITING = 1_024
        BUSY = "too many clients authenticate at this moment; try again"
        FAILED = "authentication has failed because of an error in the broker; its log has the details"
        private_constant :THREADS, :MAX_WAITING, :BUSY, :FAILED

        def initialize(authenticator, logger:)
          @authenticator = authenticator
          @logger = logger
          @requests = Thread::Queue.new
          @threads = []
        end

        # Starts the threads. They take requests from the source until it returns nil, and call the block with each decision.
        def start(source = @requests.method(:pop))
          @threads = Array.new(THREADS) do |number|
            Thread.new do
              while (request = source.call)
                yield request, decide(request)
              end
            end.tap { |thread| thread.name = "hikyaku-auth #{number + 1}" }
          end
        end

        # Hands a request to the threads.
        #
        # @return [Decision, nil] a refusal when too many requests wait
        def submit(request)
          return Decision.refuse(BUSY) if @requests.size >= MAX_WAITING
          @requests << request
          nil
        end

        def close
          @requests.close
          @threads.each(&:kill)
        end

        private

        # The message of an error may contain credentials: the log gets its class alone.
        def decide(request)
          decision = @authenticator.call(request)
          @logger.info("broker: refused #{request.address}: #{decision.reason}") unless decision.permitted?
          decision
        rescue => error
          @logger.error("broker: #{error.class} while a client was authenticated (#{error.backtrace&.first})")
          Decision.refuse(FAILED)
        end
      end
    end
  end
end
