# frozen_string_literal: true

module Hikyaku
  module Broker
    # Somebody who has said HELLO, for whoever decides what he may (docs/protocol.md, sections 3 and 11).
    class Hello
      # @return [Integer] of the session: how the answer finds it
      attr_reader :serial
      # @return [String] UTF-8; empty: none
      attr_reader :identity
      # @return [String] binary
      attr_reader :credentials
      # @return [Integer] of the credentials: 0 none, 1 a secret, 2 a token
      attr_reader :kind
      # @return [String]
      attr_reader :agent
      # @return [String] where it comes from, as the driver said
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

      # @return [String] without the credentials
      def inspect = "#<#{self.class} #{serial} #{identity.inspect} from #{address}>"
      alias_method :to_s, :inspect
    end
  end
end
