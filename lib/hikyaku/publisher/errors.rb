# frozen_string_literal: true

require_relative "../error"

module Hikyaku
  class Publisher
    # What every failed publish tells. One of the three classes below is raised, never this one.
    class Failure < PublishError
      # @return [Integer, nil] the HTTP status of the last answer
      attr_reader :status
      # @return [Hash] the hub's problem detail (RFC 9457), empty when it gave none
      attr_reader :problem
      # @return [Float, nil] seconds after which the hub asks to be tried again
      attr_reader :retry_after

      # @param message [String]
      # @param status [Integer, nil]
      # @param problem [Hash]
      # @param retry_after [Float, nil] seconds
      def initialize(message, status: nil, problem: {}, retry_after: nil)
        super(message)
        @status = status
        @problem = problem
        @retry_after = retry_after
      end

      # @return [String, nil] the hub's own sentence about what was wrong
      def detail = @problem["detail"]

      # @return [Boolean] whether the update may have been published all the same
      def outcome_unknown? = false

      # @return [Boolean] whether the same publish may succeed a little later
      def transient? = false
    end

    # No connection to the hub: nothing was sent, nothing was published.
    class Unreachable < Failure
      # @param message [String]
      # @param transient [Boolean] false when trying again at once gives the same, or takes as long again
      def initialize(message, transient: true)
        super(message)
        @transient = transient
      end

      # @return [Boolean]
      def transient? = @transient
    end

    # The hub answered that it does not publish this: see {Failure#status} and {Failure#detail}.
    class Refused < Failure
      # The hub did not look at the request.
      NOT_NOW = [408, 425, 429, 503].freeze
      private_constant :NOT_NOW

      # @return [Boolean]
      def transient? = NOT_NOW.include?(status)
    end

    # The update was sent, and then the connection broke, the time was over, or a gateway answered in the hub's place:
    # it may have been published or not.
    class OutcomeUnknown < Failure
      # @return [Boolean] true
      def outcome_unknown? = true

      # @return [Boolean] true
      def transient? = true
    end
  end
end
