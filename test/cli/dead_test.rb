# frozen_string_literal: true

require_relative "cli_helper"
require "json"
require "support/running_broker"

class CLIDeadTest < Minitest::Test
  include CommandLine

  def setup
    @broker = RunningBroker.new
    @broker.client do |client|
      @ids = ["caf\u00E9\e[2J", "x" * 100].map { |payload| client.send_message("orders", payload).id }
      receiver = client.receiver("orders")
      receiver.receive(timeout: 60).dead("no such\nbook", wait: true)
      receiver.receive(timeout: 60).dead(wait: true)
    end
  end

  def teardown
    @broker.close
  end

  def dead(*arguments) = done("dead", *@broker.flags, *arguments)

  test "dead letters are listed with why they are dead" do
    lines = dead("orders").lines.map(&:chomp)
    assert_equal "#{@ids[0]}  its receiver said so: no such book", lines[0]
    assert_match(/\A  \d+ ms old, failures 0, crashes 0, 9 bytes: caf\u00E9 \[2J\z/, lines[1])
    assert_equal "#{@ids[1]}  its receiver said so", lines[2]
    assert_match(/x{60}\u2026\z/, lines[3])
    assert_equal 2, dead("--limit", "1", "orders").lines.size
  end

  test "as JSON each has all that the broker says" do
    assert_equal [[@ids[0], 3, "no such\nbook"], [@ids[1], 3, ""]], dead("--json", "orders").lines.map { |line| JSON.parse(line).values_at("id", "reason", "words") }
  end

  test "one is replayed, and the other dropped" do
    assert_equal "1 message replayed\n", dead("--replay", @ids[0].to_s, "orders")
    assert_equal "1 message dropped\n", dead("--drop", @ids[1].to_s, "orders")
    assert_empty dead("orders")
    assert_equal [1, 0], @broker.client { |client| client.queues.first.values_at("ready", "dead") }
  end

  test "all are replayed or dropped" do
    assert_equal "2 messages replayed\n", dead("--replay", "all", "orders")
    assert_equal "0 messages dropped\n", dead("--drop", "all", "orders")
  end

  test "what there is not is said" do
    assert_match(/there is no (such )?dead letter/, refused("dead", *@broker.flags, "--drop", "9", "orders", code: 1))
    assert_match(/there is no (such )?queue/, refused("dead", *@broker.flags, "nothing", code: 1))
  end

  # [arguments, what the message holds]
  [[%w[], "give a QUEUE"], [%w[--replay some orders], "--replay: expected a whole number"], [%w[--drop 0 orders], "--drop: expected"],
    [%w[--drop 1 --replay 1 orders], "give --replay or --drop once"], [%w[--limit x orders], "--limit"]].each_with_index do |(arguments, part), index|
    test "wrong request #{index} is refused" do
      assert_includes refused("dead", *@broker.flags, *arguments), part
    end
  end
end
