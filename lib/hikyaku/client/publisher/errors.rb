# frozen_string_literal: true

require_relative "../../error"

module Hikyaku
  class Publisher
    # What every failed publish tells. One of the three classes below is raised, never this one.
    class Failure < PublishError
      attr_reader :status
      attr_reader :problem
      attr_reader :retry_after

      def initialize(message, status: nil, problem: {}, retry_after: nil)
        super(message)
        @status = status
        @problem = problem
        @retry_after = retry_after
      end

      def detail = @problem["detail"]

      def outcome_unknown? = false

      def transient? = false
    end

    # No connection to the hub: nothing was sent, nothing was published.
    class Unreachable < Failure
      def initialize(message, transient: true)
        super(message)
        @transient = transient
      end

      def transient? = @transient
    end

    # The hub answered that it does not publish this: see {Failure#status} and {Failure#detail}.
    class Refused < Failure
      # The hub did not look at the request.
      NOT_NOW = [408, 425, 429, 503].freeze
      private_constant :NOT_NOW

      def transient? = NOT_NOW.include?(status)
    end

    # The update was sent, and then the connection broke, the time was over, or a gateway answered in the hub's place:
    # it may have been published or not.
    class OutcomeUnknown < Failure
      def outcome_unknown? = true

      def transient? = true
    end
  end
end
