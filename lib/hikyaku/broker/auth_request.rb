# frozen_string_literal: true

module Hikyaku
  module Broker
    # The HELLO of a client that is to be authenticated (docs/protocol.md, sections 3 and 11).
    class AuthRequest
      attr_reader :serial
      attr_reader :identity
      attr_reader :credentials
      attr_reader :kind
      attr_reader :agent
      attr_reader :address

      def initialize(serial:, identity:, credentials:, kind:, agent: "", address: "")
        @serial = serial
        @identity = identity
        @credentials = credentials
        @kind = kind
        @agent = agent
        @address = address
        freeze
      end

      def inspect = "#<#{self.class} #{serial} #{identity.inspect} from #{address}>"
      alias_method :to_s, :inspect
    end
  end
end
