# frozen_string_literal: true

require_relative "cli_helper"
require "json"
require "support/running_broker"

class CLIIdentitiesTest < Minitest::Test
  include CommandLine

  def setup
    @broker = RunningBroker.new(broker_max_identities: 10)
    %w[billing-1 billing-2].each { |identity| @broker.client(identity: identity) { |client| client.send_message("orders", "x") } }
    @connected = @broker.client(identity: "web")
    @connected.send_message("orders", "x")
  end

  def teardown
    @connected.close
    @broker.close
  end

  def identities(*arguments) = done("identities", *@broker.flags, *arguments)

  test "identities are a table, those that would be forgotten first at the top" do
    rows = identities.lines.map(&:split)
    assert_equal [%w[IDENTITY CONNECTED IDLE SETTLED], %w[billing-1 no], %w[billing-2 no], %w[web yes 1]], [rows[0], rows[1].first(2), rows[2].first(2), rows[3]]
    assert_equal ["1"], rows[1..2].map(&:last).uniq
  end

  test "a prefix selects, and a limit ends the list" do
    assert_equal 3, identities("billing").lines.size
    assert_equal 2, identities("--limit", "1").lines.size
  end

  test "as JSON each has all its figures" do
    assert_equal [["billing-1", false, 1], ["billing-2", false, 1], ["web", true, 1]],
      identities("--json").lines.map { |line| JSON.parse(line).values_at("identity", "connected", "low") }
  end

  test "one is dropped, if no client is connected with it" do
    assert_equal "billing-1 dropped\n", identities("--drop", "billing-1")
    assert_equal %w[billing-2 web], identities("--json").lines.map { |line| JSON.parse(line)["identity"] }
    assert_match(/a client is connected/, refused("identities", *@broker.flags, "--drop", "web", code: 1))
    assert_match(/remembers no identity billing-1/, refused("identities", *@broker.flags, "--drop", "billing-1", code: 1))
    assert_includes refused("identities", *@broker.flags, "--drop", "a", "b"), "give no PREFIX"
  end

  test "what commands and clients make up for themselves is forgotten" do
    5.times { done("send", *@broker.flags, "orders", "x") }
    5.times { done("receive", *@broker.flags, "orders") }
    @broker.client { |client| client.send_batch("orders", %w[a b c]) }
    child = fork do
      @connected.send_message("orders", "from a fork")
      @connected.close
      exit!(0)
    end
    Process.wait(child)
    assert_equal %w[billing-1 billing-2 web], identities("--json").lines.map { |line| JSON.parse(line)["identity"] }
    assert_empty @broker.client { |client| client.identities("", limit: 100).map { |each| each["identity"] } } - %w[billing-1 billing-2 web]
  end
end
