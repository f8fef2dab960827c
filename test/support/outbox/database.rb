# frozen_string_literal: true

require_relative "../rails_application"
require "erb"

# The table that `bin/rails generate hikyaku:outbox` makes, and one of the application's own, in the database of the tests.
module OutboxDatabase
  TEMPLATE = File.expand_path("../../../lib/generators/hikyaku/outbox/templates/create_hikyaku_outbox.rb.tt", __dir__)

  # What transactions are about.
  class Sale < ActiveRecord::Base
    self.table_name = "sales"
  end

  class << self
    # @return [String] the migration, as the generator writes it
    def migration
      migration_version = "[#{ActiveRecord::Migration.current_version}]"
      ERB.new(File.read(TEMPLATE)).result_with_hash(migration_version: migration_version)
    end

    def migrate
      return if defined?(::CreateHikyakuOutbox)
      Object.class_eval(migration, TEMPLATE)
      ActiveRecord::Migration.suppress_messages do
        CreateHikyakuOutbox.new.migrate(:up)
        ActiveRecord::Schema.define { create_table(:sales) { |t| t.string :title } }
      end
    end

    def clear
      Sale.delete_all
      ActiveRecord::Base.connection.execute("DELETE FROM hikyaku_outbox")
    end
  end
end
