# frozen_string_literal: true

module Hikyaku
  class Doctor
    # What one check found.
    class Finding
      # From the best to the worst; what was not checked is neither.
      LEVELS = %i[skip ok warn fail].freeze

      # @return [String] the name of the check: "buffering"
      attr_reader :check
      # @return [Symbol] :ok, :warn (works, but not as well as it could), :fail, or :skip (not checked)
      attr_reader :level
      # @return [String] one sentence; may hold what a server said, in one line and without what a terminal would obey
      attr_reader :message
      # @return [Array<String>] what to change, a line each
      attr_reader :advice
      # @return [Hash{Symbol => Object}] figures, times in seconds
      attr_reader :measured

      # @param check [String]
      # @param level [Symbol]
      # @param message [String]
      # @param advice [Array<String>]
      # @param measured [Hash{Symbol => Object}]
      # @raise [ArgumentError] there is no such level
      def initialize(check:, level:, message:, advice: [], measured: {})
        raise ArgumentError, "there is no level #{level.inspect}" unless LEVELS.include?(level)
        @check = check
        @level = level
        @message = message.freeze
        @advice = advice.freeze
        @measured = measured.freeze
        freeze
      end

      # @return [Hash{Symbol => Object}] what is not empty, for JSON
      def to_h
        {check: check, level: level.to_s, message: message, advice: advice, measured: measured}
          .reject { |_, value| value.respond_to?(:empty?) && value.empty? }
      end

      # @return [String]
      def inspect = "#<#{self.class.name} #{check} #{level}: #{message}>"
    end
  end
end
