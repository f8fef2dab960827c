# frozen_string_literal: true

module Hikyaku
  module Turbo
    module AfterCommit
      # What looks to a transaction of Active Record like one of its records, and runs a block when it commits. That of a
      # savepoint goes on to the transaction around it.
      #
      # @api private
      class Follower
        def initialize(&block)
          @block = block
        end

        # @return [Boolean]
        def trigger_transactional_callbacks? = true

        # @return [void]
        def before_committed!(*)
        end

        # @param should_run_callbacks [Boolean] false when another record's callback has failed
        # @return [void]
        def committed!(should_run_callbacks: true)
          @block.call if should_run_callbacks
        end

        # @return [void]
        def rolledback!(**)
        end
      end
    end
  end
end
