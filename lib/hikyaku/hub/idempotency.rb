# frozen_string_literal: true

require "securerandom"
require_relative "../error"

module Hikyaku
  class Hub
    # Stores the idempotency keys of publishes for a while, so that a repeated request returns the id of the first and publishes
    # nothing. Bounded in number; the oldest are forgotten first.
    class Idempotency
      attr_reader :name

      def initialize(limit: 10_000, seconds: 86_400)
        @limit = limit
        @seconds = seconds
        @known = {}
        @name = SecureRandom.alphanumeric(16).freeze
      end

      def fetch(key, fingerprint, now:)
        forget(now)
        if (known = @known[key])
          raise KeyReused, "this Idempotency-Key was used for another update" unless known[:fingerprint] == fingerprint
          return known[:id]
        end
        id = yield
        @known[key] = {fingerprint: fingerprint, id: id, at: now}
        id
      end

      private

      def forget(now)
        while (key, known = @known.first)
          break if @known.size < @limit && known[:at] + @seconds > now
          @known.delete(key)
        end
      end
    end
  end

  # An Idempotency-Key came with two different updates.
  class KeyReused < ArgumentError
    include Error
  end
end
