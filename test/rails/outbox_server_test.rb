# frozen_string_literal: true

require "test_helper"
require "sqlite3"
require "support/free_port"
require "support/outbox/processes"
require "support/running_hub"

# Who takes rows to the hub where there is a server: it does, in each of its processes.
class OutboxServerTest < Minitest::Test
  include OutboxProcesses
  include OutboxProcesses::InSQLite

  PATH = "/.well-known/mercure"

  def setup
    super
    @port = FreePort.pick
  end

  def teardown
    @stream&.close
    super
    @hub&.stop
  end

  def follow(port)
    @stream = await("an answer") do
      answer = HttpClient.new(port).stream("GET", "#{PATH}?match=/1&match=/2", headers: {"host" => "localhost"})
      answer if answer.is_a?(EventStream)
    rescue SystemCallError
      nil
    end
  end

  test "the server that holds the hub publishes what a process without one has committed" do
    serve(@port)
    stream = follow(@port)
    selling = process(:sell, "/1", "/2")
    selling.until(/committed/, PATIENCE)
    assert_equal %w[/1 /2], stream.take(2, PATIENCE).map(&:data)
    assert_empty selling.errors
  end

  test "in development, where a publish without a hub is only logged, rows stay for the server all the same" do
    selling = process(:sell, "/1", RAILS_ENV: "development")
    selling.until(/committed/, PATIENCE)
    selling.close
    assert_equal 1, SQLite3::Database.new(database).get_first_value("SELECT count(*) FROM hikyaku_outbox")
  end

  test "so do the processes that Puma forks from one that has loaded the application, and those that load it" do
    @hub = RunningHub.new
    stream = follow(@hub.port)
    {2 => true, 1 => false}.each do |workers, preload|
      process(:sell, "/1", HUB: @hub.url, DIES: "before", FATAL: "/1").status(PATIENCE)
      assert stream.silent?
      File.write(File.join(@folder, "puma.rb"), "workers #{workers}\npreload_app! #{preload}\n")
      server = serve(@port, "--config", "puma.rb", HUB: @hub.url)
      assert_equal "/1", stream.next(PATIENCE).data
      refute_match(/Detected \d+ Thread/, server.output)
      server.signal("TERM")
      # Puma ends as if by the signal, when it has stopped.
      assert_includes [nil, 15], server.status(PATIENCE).termsig, server.errors
    end
  end
end
