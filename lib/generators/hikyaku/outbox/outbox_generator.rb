# frozen_string_literal: true

require "rails/generators"
require "rails/generators/active_record"

module Hikyaku
  module Generators
    # `bin/rails generate hikyaku:outbox`. Harmless when repeated.
    class OutboxGenerator < ::Rails::Generators::Base
      include ActiveRecord::Generators::Migration

      source_root File.expand_path("templates", __dir__)
      desc "Adds the table in which updates wait for the commit of their transaction."
      class_option :database, type: :string, aliases: %w[--db], desc: "The database of the table, where there are several"

      def create_migration_file
        migration_template "create_hikyaku_outbox.rb.tt", File.join(db_migrate_path, "create_hikyaku_outbox.rb"), skip: true
      end

      def switch_on
        file = "config/initializers/hikyaku.rb"
        path = File.join(destination_root, file)
        return say "Set config.hikyaku.outbox = true." unless File.exist?(path)
        return say_status(:identical, "config.hikyaku.outbox", :blue) if File.foreach(path).any?(/config\.hikyaku\.outbox\b/)
        inject_into_file file, "  # Updates are published when their transaction is committed, and only then.\n  config.hikyaku.outbox = true\n\n",
          after: /configure do\n/
      end

      def show_hints
        say "\nRun bin/rails db:migrate. The server takes the updates to the hub; so does bin/rails hikyaku:outbox, as a process of its own."
      end

      private

      def migration_version = "[#{ActiveRecord::Migration.current_version}]"
    end
  end
end
