# frozen_string_literal: true

module Hikyaku
  module Broker
    class Server
      # What was decided about a HELLO: what its sender may do and until when, or why it may not.
      class Decision
        # @return [Array<Permission>, nil] nil: it was refused
        attr_reader :permissions
        # @return [Integer, nil] ms since 1970; nil: for ever
        attr_reader :until_ms
        # @return [String, nil] why it was refused
        attr_reader :sentence

        # @param permissions [Array<Permission>]
        # @param until_ms [Integer, nil]
        # @return [Decision]
        def self.permit(permissions, until_ms: nil) = new(permissions: permissions, until_ms: until_ms)

        # @param sentence [String]
        # @return [Decision]
        def self.refuse(sentence) = new(sentence: sentence)

        # @param permissions [Array<Permission>, nil]
        # @param until_ms [Integer, nil]
        # @param sentence [String, nil]
        def initialize(permissions: nil, until_ms: nil, sentence: nil)
          @permissions = permissions.freeze
          @until_ms = until_ms
          @sentence = sentence
          freeze
        end

        # @return [Boolean]
        def permitted? = !permissions.nil?
      end
    end
  end
end
