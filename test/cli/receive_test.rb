# frozen_string_literal: true

require_relative "cli_helper"
require "json"
require "open3"
require "support/client_process"
require "support/running_broker"
require "timeout"

class CLIReceiveTest < Minitest::Test
  include CommandLine

  def setup
    @broker = RunningBroker.new
  end

  def teardown
    @broker.close
  end

  def give(*payloads, queue: "resize", **options)
    @broker.client { |client| payloads.map { |payload| client.send_message(queue, payload, **options).id } }
  end

  def receive(*arguments, **options) = done("receive", *@broker.flags, *arguments, **options)

  def left = @broker.client { |client| client.queues("resize").first.values_at("ready", "delayed", "out", "dead") }

  test "one message is printed, and freed" do
    give("a", "b")
    assert_equal "a\n", receive("resize")
    assert_equal [1, 0, 0, 0], left
  end

  test "so many messages are received, and the rest stays" do
    give(*%w[a b c d])
    assert_equal "a\nb\nc\n", receive("--count", "3", "resize")
    assert_equal "d\n", receive("--count", "3", "--wait", "1", "resize")
    assert_equal [0, 0, 0, 0], left
  end

  test "when there is nothing it ends with code 1" do
    result = hikyaku("receive", *@broker.flags, "--wait", "0.05", "resize")
    assert_equal [1, "", ""], result.to_a
  end

  test "what is only looked at stays, in order, and counts as nothing" do
    give(*%w[a b c])
    2.times { assert_equal "a\nb\nc\n", receive("--release", "--count", "10", "--wait", "1", "resize") }
    assert_equal [[0, 0]], @broker.client { |client| client.receiver("resize").receive(timeout: 60).then { |delivery| [[delivery.failures, delivery.crashes]] } }
  end

  test "as JSON a message has all its fields" do
    id, = give("caf\u00E9", properties: {"reply-to": "ann"}, priority: 7)
    assert_equal({"id" => id, "payload" => "caf\u00E9", "properties" => {"reply-to" => "ann"}, "attempt" => 1, "failures" => 0, "crashes" => 0, "priority" => 7},
      JSON.parse(receive("--json", "resize")))
    give("\xFF".b)
    assert_equal "/w==", JSON.parse(receive("--json", "resize"))["payload_base64"]
  end

  test "a command gets the payload, and frees it when it has done with it" do
    id, = give("photo.jpg")
    assert_equal "photo.jpg #{id} resize 1 0", receive("--exec", 'printf "%s %s %s %s %s" "$(cat)" $HIKYAKU_MESSAGE_ID $HIKYAKU_QUEUE $HIKYAKU_ATTEMPT $HIKYAKU_FAILURES', "resize")
    assert_equal [0, 0, 0, 0], left
  end

  test "a command that fails rejects, and says so, and the message comes later" do
    id, = give("photo.jpg")
    result = hikyaku("receive", *@broker.flags, "--exec", "echo tried; exit 3", "resize")
    assert_equal [0, "tried\n", "hikyaku: message #{id}: the command ended with 3; it comes again\n"], result.to_a
    assert_equal [0, 1, 0, 0], left
    assert_match(/was killed by signal 9/, hikyaku("receive", *@broker.flags, "--exec", "kill -9 $$", "resize").err)
  end

  test "a command that runs too long is ended with what it has started, and its message comes later" do
    id, = give("photo.jpg")
    result = hikyaku("receive", *@broker.flags, "--timeout", "0.2", "--exec", "echo began; sleep 60; echo done", "resize")
    assert_equal [0, "began\n", "hikyaku: message #{id}: the command ran longer than 0.2 seconds and was ended; it comes again\n"], result.to_a
    assert_equal [0, 1, 0, 0], left
  end

  test "without a limit, and in time, a command runs to its end" do
    give("a", "b")
    assert_equal "done\n", receive("--timeout", "0", "--exec", "sleep 0.3; echo done", "resize")
    assert_equal "done\n", receive("--timeout", "30", "--exec", "echo done", "resize")
    assert_equal [0, 0, 0, 0], left
  end

  test "what is looked at for longer than its lease counts as nothing, and is not seen twice" do
    give(*%w[a b])
    assert_equal "a\nb\n", receive("--release", "--lease", "3", "--count", "10", "--wait", "3.5", "resize")
    assert_equal [0, 0], @broker.client { |client| client.receiver("resize").receive(timeout: 60).then { |delivery| [delivery.failures, delivery.crashes] } }
  end

  test "a command may read nothing, and a payload may be larger than a pipe" do
    give("x" * 300_000, "y" * 300_000)
    assert_equal 300_000, receive("--exec", "cat", "resize").size
    assert_equal "done\n", receive("--exec", "echo done", "resize")
  end

  test "a client receives what is its own" do
    @broker.client { |client| client.send_message("ann", "hello", to: :client) }
    assert_equal "hello\n", receive("--identity", "ann")
  end

  test "it goes on until interrupted, which costs no message" do
    give("a")
    process = ClientProcess.new(RbConfig.ruby, File.expand_path("../../exe/hikyaku", __dir__), "receive", *@broker.flags, "--follow", "--exec", "exec sleep 60", "resize")
    Timeout.timeout(60) { sleep 0.01 until left[2] == 1 }
    process.signal("INT")
    assert_equal 130, process.status.exitstatus, process.errors
    assert_equal [1, 0, 0, 0], left
    assert_equal [0, 0], @broker.client { |client| client.receiver("resize").receive(timeout: 60).then { |delivery| [delivery.failures, delivery.crashes] } }
  ensure
    process&.close
  end

  test "a message is not lost to a reader that goes away" do
    give(*Array.new(5) { |index| "message #{index}" })
    Open3.popen3(RbConfig.ruby, File.expand_path("../../exe/hikyaku", __dir__), "receive", *@broker.flags, "--follow", "resize") do |_in, out, err, process|
      5.times { |index| assert_equal "message #{index}\n", Timeout.timeout(60) { out.gets } }
      out.close
      give("never read")
      assert_equal 141, Timeout.timeout(60) { process.value.exitstatus }
      assert_empty err.read
    end
    assert_equal "never read\n", receive("resize")
  end

  # [arguments, what the message holds]
  [[%w[], "give a QUEUE"], [%w[--count 0 q], "--count: expected"], [%w[--wait x q], "--wait: expected"], [%w[--release --exec x q], "give one of them"],
    [%w[@ann], "give --identity ann"], [%w[--lease x q], "--lease: expected"], [%w[--timeout x q], "--timeout: expected"],
    [%w[--lease 99999999999 q], "--lease: expected a number of seconds from 0 to 4294966"]].each_with_index do |(arguments, part), index|
    test "wrong request #{index} is refused" do
      assert_includes refused("receive", *@broker.flags, *arguments), part
    end
  end
end
