# frozen_string_literal: true

require_relative "../../hub/update"

module Hikyaku
  class Publisher
    # A hub in this process.
    class LocalHub
      def initialize(hub)
        @hub = hub
      end

      def publish(fields, idempotency_key)
        update = Hub::Update.new(**fields)
        idempotency_key ? @hub.publish(update, idempotency_key: idempotency_key) : @hub.publish(update)
      end

      def disconnect(subject, revoke) = @hub.disconnect(subject: subject, revoke: revoke)

      def close
      end

      def to_s = "in this process"
    end
  end
end
