# frozen_string_literal: true

require_relative "cli_helper"
require "json"
require "support/running_broker"

class CLIExplainTest < Minitest::Test
  include CommandLine

  def setup
    @broker = RunningBroker.new
    @client = @broker.client(identity: "ann", agent: "test 1")
    @id = @client.send_message("orders", "x", ttl: 3600).id
  end

  def teardown
    @client.close
    @broker.close
  end

  def explain(*arguments) = done("explain", *@broker.flags, *arguments)

  test "a message that waits is explained" do
    lines = explain(@id.to_s).lines.map(&:strip)
    assert_equal "Message #{@id} in orders: ready, nobody receives from this queue.", lines.first
    assert_includes lines, "level: written"
    assert_includes lines, "expires: in 60 min"
    assert_includes lines, "tried: failures 0, crashes 0, returns 0"
    assert_equal lines, explain("orders").lines.map(&:strip).map { |line| line.start_with?("age") ? lines[1] : line }
  end

  test "a message that is out is explained by who has it" do
    @client.receiver("orders").receive(timeout: 60)
    assert_match(/held by: ann \(test 1\), session \d+, for \d+(\.\d)? s more/, explain(@id.to_s))
  end

  test "a queue that is empty is explained, too, and one may be a number" do
    @client.send_message("12", "x")
    @client.receiver("12").receive(timeout: 60).ack(wait: true)
    assert_equal "Nothing waits in this queue.\n", explain("--queue", "12")
  end

  test "as JSON it is what the broker says" do
    assert_equal [@id, "ready"], JSON.parse(explain("--json", @id.to_s)).fetch("message").values_at("id", "state")
  end

  test "the journal is explained by the messages that keep it" do
    assert_equal [%w[SEGMENT BYTES LIVE OLDEST IN], [@id.to_s, "orders"]], explain("--segments").lines.map(&:split).then { |heading, row| [heading, row.last(2)] }
    assert_equal "orders", JSON.parse(explain("--segments", "--json").lines.first).dig("oldest", "queue")
  end

  test "what there is not is said" do
    assert_match(/there is no (such )?message/, refused("explain", *@broker.flags, "9", code: 1))
    assert_match(/there is no (such )?queue/, refused("explain", *@broker.flags, "nothing", code: 1))
    assert_includes refused("explain", *@broker.flags), "give an ID or a QUEUE"
    assert_includes refused("explain", *@broker.flags, "--segments", "9"), "give no ID"
  end
end
