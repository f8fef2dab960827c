# frozen_string_literal: true

require "test_helper"
require "support/outbox/stories"
require "support/postgresql"

# The outbox in PostgreSQL, where couriers skip rows that others have locked: processes with the gems of
# gemfiles/postgresql.gemfile, and a server of the test's own. What is the courier's and not the database's is tried with SQLite.
class OutboxPostgresqlTest < Minitest::Test
  include OutboxProcesses
  include OutboxStories

  class << self
    # @return [String] the name of a database with the tables, which is only copied
    attr_accessor :template
  end

  def setup
    skip PostgreSQL.missing if PostgreSQL.missing
    super
    make_template unless self.class.template
    @database = server.database(template: self.class.template)
  end

  def database_url = server.url(@database)

  def environment = {**super, **PostgreSQL.environment}

  private

  # All rows are there, and nobody's: they were locked and not leased, so that nobody has to wait.
  def look_at_what_is_left = assert_equal(["3|0"], server.query(@database, "SELECT count(*), count(lease) FROM hikyaku_outbox"))

  def server = PostgreSQL.shared

  def make_template
    @database = server.database
    migrate
    self.class.template = @database
  end
end
