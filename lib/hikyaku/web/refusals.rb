# frozen_string_literal: true

module Hikyaku
  class Web
    # Counts what was refused, by reason. Thread-safe.
    class Refusals
      REASONS = {
        400 => "malformed", 401 => "no_token", 403 => "insufficient_scope", 404 => "not_found", 405 => "method_not_allowed",
        412 => "memory_lost", 413 => "too_large", 422 => "key_reused", 429 => "too_many_connections", 500 => "error",
        503 => "stopping"
      }.freeze
      private_constant :REASONS

      def initialize
        @counts = Hash.new(0)
        @mutex = Mutex.new
      end

      def add(problem)
        reason = problem.reason || problem.code || REASONS.fetch(problem.status, "other")
        @mutex.synchronize { @counts[reason] += 1 }
      end

      def to_h = @mutex.synchronize { @counts.dup }
    end
  end
end
