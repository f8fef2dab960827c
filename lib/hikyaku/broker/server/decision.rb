# frozen_string_literal: true

module Hikyaku
  module Broker
    class Server
      # What was decided about a HELLO: what its sender may do and until when, or why it may not.
      class Decision
        attr_reader :permissions
        attr_reader :until_ms
        attr_reader :sentence

        def self.permit(permissions, until_ms: nil) = new(permissions: permissions, until_ms: until_ms)

        def self.refuse(sentence) = new(sentence: sentence)

        def initialize(permissions: nil, until_ms: nil, sentence: nil)
          @permissions = permissions.freeze
          @until_ms = until_ms
          @sentence = sentence
          freeze
        end

        def permitted? = !permissions.nil?
      end
    end
  end
end
