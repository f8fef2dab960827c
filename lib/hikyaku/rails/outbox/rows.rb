# frozen_string_literal: true

require "json"
require "securerandom"
require_relative "../../error"

module Hikyaku
  class Outbox
    # The table of an outbox, as a class of Active Record.
    module Rows
      TABLE = "hikyaku_outbox"
      MAX_ERROR_BYTES = 1_000
      private_constant :MAX_ERROR_BYTES

      # The payload of a row is not what this library writes.
      class Unreadable < StandardError
        include Error
      end

      class << self
        def of(base, outbox:)
          Class.new(base) do
            # Of messages and of the log: the class has no constant.
            define_singleton_method(:name) { "Hikyaku::Outbox::Row" }
            define_singleton_method(:to_s) { name }
            self.table_name = TABLE
            self.inheritance_column = nil
            include Row

            extend Queries

            after_commit(on: :create) { outbox.committed(self) }
          end
        end

        # Whose rows these are: every process, a forked one too, has an order of its own.
        def origin
          @origin = [Process.pid, SecureRandom.alphanumeric(16)] unless @origin&.first == Process.pid
          @origin.last
        end

        def sentence(error) = "#{error.class}: #{error.message}".encode(Encoding::UTF_8, invalid: :replace, undef: :replace).delete("\0").truncate_bytes(MAX_ERROR_BYTES)
      end

      # What is asked of the table.
      module Queries
        def waiting = where(set_aside_at: nil)

        def aside = where.not(set_aside_at: nil)

        # Asked every second: with the name of what Active Record does not log.
        def waiting? = lent { |connection| !connection.select_value(waiting.limit(1).select(:id).to_sql, "SCHEMA").nil? }

        # The thread gives it back, whatever it did before.
        def lent(&block) = connection_pool.with_connection(&block)

        def open_transaction
          transaction = connection_pool.active_connection?&.current_transaction
          transaction if transaction&.open? && transaction.joinable?
        end

        def store(update, key:)
          payload = {topics: update.topics, data: update.data, private: update.private? || nil, id: update.id, type: update.type, retry_after: update.retry_after}
          writing do
            new(origin: Rows.origin, idempotency_key: key, payload: JSON.generate(payload.compact)).save!(validate: false)
          end
        rescue ::ActiveRecord::StatementInvalid, ::ActiveRecord::UnknownAttributeError => error
          raise unless missing?
          raise ConfigError, "the table #{TABLE} is missing: run bin/rails generate hikyaku:outbox and bin/rails db:migrate (#{error.class})"
        end

        # A request that reads from a replica may publish all the same.
        def writing(&block)
          return yield if current_role == ::ActiveRecord.writing_role && !current_preventing_writes
          superclass.connected_to(role: ::ActiveRecord.writing_role, prevent_writes: false, &block)
        end

        private

        # A transaction that has failed answers no question: then nothing is known.
        def missing?
          reset_column_information
          lent { |connection| !connection.data_source_exists?(TABLE) }
        rescue ::ActiveRecord::ActiveRecordError
          false
        end
      end

      # One of them: an update, with the key under which it is published.
      module Row
        def topics = read.fetch("topics")

        def data = read.fetch("data")

        def options = {private: read.key?("private"), id: read["id"], type: read["type"], retry_after: read["retry_after"]}

        def readable?
          !!read
        rescue Unreadable
          false
        end

        private

        def read
          @read ||= JSON.parse(payload).tap { |parts| raise KeyError unless parts.is_a?(Hash) && parts["topics"].is_a?(Array) && parts["data"].is_a?(String) }
        rescue JSON::ParserError, KeyError
          raise Unreadable, "the payload of row #{id} of #{TABLE} is no update"
        end
      end

      private_constant :Queries, :Row
    end
  end
end
