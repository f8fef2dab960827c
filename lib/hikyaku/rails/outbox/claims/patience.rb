# frozen_string_literal: true

require_relative "../../../support/clock"

module Hikyaku
  class Outbox
    module Claims
      # SQLite's own waiting for a database that another connection writes to is done in C, and no other thread of Ruby's runs
      # meanwhile: not the one either that is to finish writing. A courier waits in Ruby.
      module Patience
        extend Support::Clock

        DEFAULT_MILLISECONDS = 5_000
        # Seconds of the first pause, and of the longest.
        PAUSES = (0.001..0.02)
        private_constant :DEFAULT_MILLISECONDS, :PAUSES

        module_function

        # For as long as the connection lives, whoever has it next.
        def teach(connection)
          return unless connection.adapter_name.match?(/sqlite/i)
          raw = connection.raw_connection
          return if !raw.respond_to?(:busy_handler) || raw.respond_to?(:busy_handler_timeout=)
          seconds = (connection.pool.db_config.configuration_hash[:timeout] || DEFAULT_MILLISECONDS).to_f / 1000
          began = 0
          raw.busy_handler do |count|
            began = now if count.zero?
            sleep [PAUSES.min * (count + 1), PAUSES.max].min
            now - began < seconds
          end
        end
      end
    end
  end
end
