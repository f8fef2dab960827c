# frozen_string_literal: true

require "test_helper"
require "sqlite3"
require "support/outbox/stories"

# Models that declare broadcasts, in processes with an outbox that die between the commit and the publish: what was announced
# does not depend on who lives to publish it.
class OutboxBroadcastsProcessTest < Minitest::Test
  include OutboxProcesses
  include OutboxProcesses::InSQLite
  include OutboxStories

  # The stories' own tests are those of other files.
  instance_methods.grep(/\Atest_/).each { |name| undef_method(name) }

  PARTIAL = "app/views/sales/_sale.html.erb"
  # When, and at the publish of which sale.
  DEATHS = {"first" => ["before", 1], "between" => ["before", 2], "unwritten" => ["after", 2], "commit" => ["commit"]}.freeze

  def setup
    super
    FileUtils.mkdir_p(File.dirname("#{@folder}/#{PARTIAL}"))
    File.write("#{@folder}/#{PARTIAL}", "<p><%= sale.title %></p>")
  end

  test "whenever a process dies after its commit: what its models have announced is published after the restart, once and in order" do
    DEATHS.each do |name, (moment, sale)|
      titles = Array.new(3) { |index| "#{name}-#{index + 1}" }
      dying = process(:announce, *titles, BROADCASTS: "1", DIES: moment, FATAL: "/turbo/streams/#{name}-#{sale}")
      assert_equal 9, dying.status(PATIENCE).termsig, dying.errors
    end
    end_leases
    announced = published.map { |stream| stream.match(%r{action="(\w+)".*<p>(.*)</p>}m).captures }.group_by { |_, title| title[/\w+/] }
    expected = DEATHS.keys.to_h { |name| [name, [1, 2, "3 again"].map { |rest| ["append", "#{name}-#{rest}"] }] }
    assert_equal expected, announced
  end

  private

  # As if the time of those who have died were over.
  def end_leases
    database = SQLite3::Database.new(self.database)
    database.execute("UPDATE hikyaku_outbox SET leased_until = '2000-01-01' WHERE leased_until IS NOT NULL")
    assert_operator database.changes, :>, 0
  ensure
    database&.close
  end
end
