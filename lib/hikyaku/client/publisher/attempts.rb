# frozen_string_literal: true

require_relative "errors"

module Hikyaku
  class Publisher
    # The attempts of one publish. Decides what is sent again:
    #
    #     no connection, nothing sent     once more
    #     the hub says not now            again, when it asks for it   (408, 425, 429, 503)
    #     the hub refuses the token       once, with a new token       (401)
    #     sent, and no answer             again if it cannot publish twice (reset, timeout, 502, …)
    #     anything else                   never
    class Attempts
      def initialize(tokens:, retries:, &may_repeat)
        @tokens = tokens
        @retries = retries
        @may_repeat = may_repeat
        @doubt = nil
        @renewed = false
        @reconnected = false
      end

      def run
        token = @tokens.token
        yield token, !@doubt.nil?
      rescue Failure => failure
        @doubt ||= failure if failure.outcome_unknown?
        raise conclusion(failure) unless renewed?(failure, token) || again?(failure)
        retry
      end

      private

      def renewed?(failure, token)
        return false if failure.status != 401 || @renewed
        @renewed = @tokens.refused(token)
      end

      def again?(failure)
        return false unless failure.transient?
        if @doubt
          return false unless @may_repeat.call
        elsif failure.is_a?(Unreachable)
          return false if @reconnected
          @reconnected = true
        end
        @retries.again?(at_least: failure.retry_after)
      end

      # Once one attempt may have been processed, no later failure can tell that it was not.
      def conclusion(failure)
        return failure if @doubt.nil? || failure.outcome_unknown?
        OutcomeUnknown.new("#{@doubt.message}; trying again: #{failure.message}",
          status: failure.status, problem: failure.problem, retry_after: failure.retry_after)
      end
    end
  end
end
