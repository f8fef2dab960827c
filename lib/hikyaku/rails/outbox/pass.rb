# frozen_string_literal: true

require_relative "../../support/clock"
require_relative "rows"
require_relative "verdict"

module Hikyaku
  class Outbox
    # One turn of a courier: claims rows, publishes them in order, deletes those that were.
    class Pass
      LIMIT = 500
      # Seconds in which publishes are begun: so long may a transaction be open.
      BUDGET = 4
      # Of a row for which the hub has no clear answer, before it is asked whether it takes others.
      ATTEMPTS = 8
      # What came of it: how many rows were published and set aside, whether there may be more to do at once, and why it
      # ended early.
      Outcome = Struct.new(:published, :set_aside, :more, :error, keyword_init: true)
      private_constant :LIMIT, :BUDGET, :ATTEMPTS

      def initialize(rows, claims, publish:, logger: nil, clock: Support::Clock::MONOTONIC)
        @rows = rows
        @claims = claims
        @publish = publish
        @logger = logger
        @clock = clock
        @published = []
        @hopeless = {}
        @tried = []
        @error = nil
      end

      def run
        deadline = @clock.call + BUDGET
        more = @claims.take(LIMIT) do |taken, mine|
          due = in_turn(taken)
          carry(due, -> { @clock.call < deadline && mine.call })
          due.any? && (taken.size == LIMIT || @published.size + @hopeless.size < due.size)
        ensure
          settle
        end
        Outcome.new(published: @published.size, set_aside: @hopeless.size, more: @error.nil? && !!more, error: @error)
      end

      private

      # Without those of which an earlier row of the same process is another courier's at the moment.
      def in_turn(taken)
        ids = taken.map(&:id)
        earlier = @rows.waiting.where(id: ..ids.last)
        return taken if earlier.count == ids.size
        before = earlier.where.not(id: ids).group(:origin).minimum(:id)
        taken.reject { |row| before.fetch(row.origin, row.id) < row.id }
      end

      def carry(due, mine)
        suspect = nil
        due.each do |row|
          break unless mine.call
          error = attempt(row)
          if error.nil?
            # The hub takes others: it is the row.
            @hopeless[suspect] = @error if suspect
            suspect = @error = nil
          elsif Verdict.hopeless?(error)
            @hopeless[row] = error
          else
            @error = error
            break if Verdict.away?(error)
            @tried << row
            break if suspect || row.attempts + 1 < ATTEMPTS
            suspect = row
          end
        end
      end

      def attempt(row)
        @publish.call(row)
        @published << row.id
        nil
      rescue => error
        error
      end

      # Also of a pass that is ended by force, as far as it came.
      def settle
        @rows.where(id: @published).delete_all if @published.any?
        tried = @tried - @hopeless.keys
        @rows.where(id: tried).update_all("attempts = attempts + 1") if tried.any?
        @hopeless.each do |row, error|
          @rows.where(id: row.id).update_all(set_aside_at: Time.now, attempts: row.attempts + 1, error: Rows.sentence(error))
          @logger&.error("Hikyaku: row #{row.id} of #{Rows::TABLE} cannot be published and was set aside: #{Rows.sentence(error)}")
        end
      end
    end
  end
end
