# frozen_string_literal: true

require_relative "../hub/update"

module Hikyaku
  class Publisher
    # A hub in this process.
    #
    # @api private
    class LocalHub
      # @param hub [#publish]
      def initialize(hub)
        @hub = hub
      end

      # @param fields [Hash] arguments of Hub::Update
      # @param idempotency_key [String, nil] only if the caller gave one: nothing is repeated here
      # @return [String] the event id
      def publish(fields, idempotency_key)
        update = Hub::Update.new(**fields)
        idempotency_key ? @hub.publish(update, idempotency_key: idempotency_key) : @hub.publish(update)
      end

      # @param subject [String]
      # @param revoke [Boolean]
      # @return [Integer]
      def disconnect(subject, revoke) = @hub.disconnect(subject: subject, revoke: revoke)

      # @return [void]
      def close
      end

      # @return [String]
      def to_s = "in this process"
    end
  end
end
