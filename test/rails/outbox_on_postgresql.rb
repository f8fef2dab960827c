# frozen_string_literal: true

require "test_helper"
require "support/outbox/stories"
require "support/postgresql"

# The outbox in PostgreSQL, where couriers skip rows that others have locked. Not a part of bin/test: its package would start a server.
#
#     BUNDLE_GEMFILE=gemfiles/postgresql.gemfile bundle install
#     bundle exec ruby -Itest -Ilib test/rails/outbox_on_postgresql.rb
class OutboxPostgresqlTest < Minitest::Test
  include OutboxProcesses
  include OutboxStories

  def setup
    skip PostgreSQL.missing if PostgreSQL.missing
    super
    migrate
  end

  def database_url = @database_url ||= PostgreSQL.shared.database

  def environment = {**super, **PostgreSQL.environment}
end
