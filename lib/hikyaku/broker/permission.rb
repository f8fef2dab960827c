# frozen_string_literal: true

module Hikyaku
  module Broker
    # Queues, and what somebody may do with them (docs/protocol.md, section 11).
    class Permission
      # Bits of `rights`.
      SEND = 1
      RECEIVE = 2
      MANAGE = 4
      ALL = SEND | RECEIVE | MANAGE

      # @return [String] a name, or a beginning of names with `*` at its end; `@identity`: queues of clients
      attr_reader :pattern
      # @return [Integer]
      attr_reader :rights

      # @return [Permission] to do everything
      def self.all = @all ||= new("*", ALL)

      # @param pattern [String]
      # @param rights [Integer] SEND, RECEIVE and MANAGE added up
      def initialize(pattern, rights)
        raise ArgumentError, "rights are 1 send, 2 receive and 4 manage, added up: #{rights.inspect}" unless rights.is_a?(Integer) && rights.between?(0, ALL)
        @pattern = pattern.b.freeze
        @rights = rights
        @beginning = @pattern.end_with?("*") ? @pattern.chop.freeze : nil
        freeze
      end

      # @param name [String] binary, as it stands in patterns
      # @return [Boolean]
      def covers?(name)
        @beginning ? name.start_with?(@beginning) : name == @pattern
      end
    end
  end
end
