# frozen_string_literal: true

module Hikyaku
  module Broker
    # Queues, and the rights of a client to them (docs/protocol.md, section 11).
    class Permission
      # Bits of `rights`.
      SEND = 1
      RECEIVE = 2
      MANAGE = 4
      ALL = SEND | RECEIVE | MANAGE

      attr_reader :pattern
      attr_reader :rights

      def self.all = @all ||= new("*", ALL)

      def initialize(pattern, rights)
        raise ArgumentError, "rights are 1 send, 2 receive and 4 manage, added up: #{rights.inspect}" unless rights.is_a?(Integer) && rights.between?(0, ALL)
        @pattern = pattern.b.freeze
        @rights = rights
        @beginning = @pattern.end_with?("*") ? @pattern.chop.freeze : nil
        freeze
      end

      def covers?(name)
        @beginning ? name.start_with?(@beginning) : name == @pattern
      end
    end
  end
end
