# frozen_string_literal: true

require_relative "cli_helper"
require "json"
require "support/client_process"
require "support/running_broker"

class CLIQueuesTest < Minitest::Test
  include CommandLine

  def setup
    @broker = RunningBroker.new
    @broker.client do |client|
      3.times { client.send_message("orders", "x") }
      client.send_message("orders-late", "x", delay: 3600)
      client.send_message("ann", "x", to: :client)
    end
  end

  def teardown
    @broker.close
  end

  def queues(*arguments) = done("queues", *@broker.flags, *arguments)

  test "queues are a table" do
    heading, orders, late, *rest = queues.lines.map(&:split)
    assert_equal %w[QUEUE READY DELAYED OUT DEAD RECEIVERS SENT FREED OLDEST], heading
    assert_equal %w[orders 3 0 0 0 0 3 0], orders.first(8)
    assert_equal %w[orders-late 0 1 0 0 0 1 0], late
    assert_empty rest
  end

  test "a prefix selects, and @ those of clients" do
    assert_equal 2, queues("orders-").lines.size
    assert_equal %w[@ann 1], queues("@").lines.last.split.first(2)
    assert_equal 1, queues("nothing").lines.size
    assert_equal 2, queues("--limit", "1").lines.size
  end

  test "as JSON each has all its figures" do
    assert_equal [["orders", 3, 0], ["orders-late", 0, 1]], queues("--json").lines.map { |line| JSON.parse(line).values_at("name", "ready", "delayed") }
    assert_equal ["@ann"], queues("--json", "@").lines.map { |line| JSON.parse(line)["name"] }
  end

  test "a queue is emptied when that is asked for" do
    assert_equal "3 messages dropped\n", queues("--purge", "orders")
    assert_equal "1 message dropped\n", queues("--purge", "@ann")
    assert_match(/there is no (such )?queue/, refused("queues", *@broker.flags, "--purge", "nothing", code: 1))
    assert_includes refused("queues", *@broker.flags, "--purge", "orders", "orders"), "give no PREFIX"
  end

  test "they are shown again and again until interrupted" do
    process = ClientProcess.new(RbConfig.ruby, File.expand_path("../../exe/hikyaku", __dir__), "queues", *@broker.flags, "--watch", "--json", "orders")
    process.until { |output| output.scan('"name":"orders"').size == 2 }
    process.signal("INT")
    assert_equal 130, process.status.exitstatus
  ensure
    process&.close
  end
end
