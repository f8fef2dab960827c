# frozen_string_literal: true

module Hikyaku
  module Broker
    # Somebody who has said HELLO, for whoever decides what he may (docs/protocol.md, sections 3 and 11).
    class Hello
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
