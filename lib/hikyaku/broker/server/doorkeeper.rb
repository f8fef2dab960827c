# frozen_string_literal: true

require_relative "decision"

module Hikyaku
  module Broker
    class Server
      # Has an authenticator decide in a few threads, so that nobody waits while one issuer's keys are fetched.
      class Doorkeeper
        THREADS = 2
        # HELLOs that wait for a decision; beyond, they are refused, to be tried again.
        MOST = 1_024
        BUSY = "too many clients say who they are at this moment; try again"
        MISTAKE = "the broker made a mistake; its log says more"
        private_constant :THREADS, :MOST, :BUSY, :MISTAKE

        def initialize(authenticator, logger:)
          @authenticator = authenticator
          @logger = logger
          @hellos = Thread::Queue.new
          @threads = []
        end

        # Never waits.
        def decide(hello, &answer)
          return answer.call(Decision.refuse(BUSY)) if @hellos.size >= MOST
          start
          @hellos << [hello, answer]
        end

        # Decides here and now, whatever goes wrong. What went wrong may speak of what was given: the log gets the class alone.
        def judge(hello)
          decision = @authenticator.call(hello)
          @logger.info("broker: refused #{hello.address}: #{decision.sentence}") unless decision.permitted?
          decision
        rescue => error
          @logger.error("broker: #{error.class} while a client was asked who it is (#{error.backtrace&.first})")
          Decision.refuse(MISTAKE)
        end

        def close
          @hellos.close
          @threads.each(&:kill)
        end

        private

        # With the first one who is to be asked about.
        def start
          return if @threads.any?
          @threads = Array.new(THREADS) { |number| Thread.new { work }.tap { |thread| thread.name = "hikyaku-door #{number + 1}" } }
        end

        def work
          while (hello, answer = @hellos.pop)
            answer.call(judge(hello))
          end
        end
      end
    end
  end
end
