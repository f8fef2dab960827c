# frozen_string_literal: true

module Hikyaku
  module Turbo
    # Runs a block when the transactions that this thread has open have committed, and never when one is rolled back. At once
    # where none is open.
    #
    # Transactions that nobody can join, as those round each test of an application, do not count: they are never committed.
    module AfterCommit
      class << self
        def call(&block)
          return yield unless Turbo.settings.after_commit? && defined?(::ActiveRecord::Base)
          return ::ActiveRecord.after_all_transactions_commit(&block) if ::ActiveRecord.respond_to?(:after_all_transactions_commit)
          require_relative "after_commit/follower"
          after(connections_in_transactions, &block)
        end

        private

        # Rails 7.1, which cannot be told to wait: a block goes among the records of each transaction.
        def after(connections)
          return yield if connections.empty?
          left = connections.size
          connections.each do |connection|
            connection.add_transaction_record(Follower.new { yield if (left -= 1).zero? })
          end
        end

        def connections_in_transactions
          ::ActiveRecord::Base.connection_handler.each_connection_pool.filter_map do |pool|
            connection = pool.active_connection? or next
            connection if connection.current_transaction.open? && connection.current_transaction.joinable?
          end
        end
      end
    end
  end
end
