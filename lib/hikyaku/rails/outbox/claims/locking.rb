# frozen_string_literal: true

module Hikyaku
  class Outbox
    module Claims
      # Rows are locked for as long as a transaction lasts (`FOR UPDATE SKIP LOCKED`). A courier that dies loses its
      # connection, and the database gives its rows to the next one at once.
      class Locking
        def initialize(rows)
          @rows = rows
        end

        def take(limit)
          # With its own isolation MySQL would lock the gap behind the last row too, and make every publish wait.
          @rows.transaction(isolation: :read_committed) do
            taken = @rows.waiting.order(:id).limit(limit).lock("FOR UPDATE SKIP LOCKED").to_a
            yield taken, -> { true } unless taken.empty?
          end
        end
      end
    end
  end
end
