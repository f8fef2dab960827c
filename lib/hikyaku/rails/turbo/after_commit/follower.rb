# frozen_string_literal: true

module Hikyaku
  module Turbo
    module AfterCommit
      # What looks to a transaction of Active Record like one of its records, and runs a block when it commits. That of a
      # savepoint goes on to the transaction around it.
      class Follower
        def initialize(&block)
          @block = block
        end

        def trigger_transactional_callbacks? = true

        def before_committed!(*)
        end

        def committed!(should_run_callbacks: true)
          @block.call if should_run_callbacks
        end

        def rolledback!(**)
        end
      end
    end
  end
end
