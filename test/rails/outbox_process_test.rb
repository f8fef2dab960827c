# frozen_string_literal: true

require "test_helper"
require "support/outbox/stories"

# The outbox in SQLite, where couriers lease rows.
class OutboxProcessTest < Minitest::Test
  include OutboxProcesses
  include OutboxProcesses::InSQLite
  include OutboxStories
  include OutboxStories::Couriers
end
