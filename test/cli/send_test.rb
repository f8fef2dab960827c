# frozen_string_literal: true

require_relative "cli_helper"
require "support/running_broker"

class CLISendTest < Minitest::Test
  include CommandLine

  def setup
    @broker = RunningBroker.new
  end

  def teardown
    @broker.close
  end

  def send_to(queue, *arguments, **options) = done("send", *@broker.flags, queue, *arguments, **options).lines.map { |line| Integer(line, 10) }

  # What waits in a queue, in order.
  def waiting(queue, **options)
    @broker.client(**options) do |client|
      receiver = client.receiver(queue)
      found = []
      while (delivery = receiver.receive(timeout: 0.1))
        found << delivery
      end
      found
    end
  end

  test "a message is sent, and its id printed" do
    id, = send_to("resize", "photo.jpg")
    message, = waiting("resize")
    assert_equal [id, "photo.jpg", "resize"], [message.id, message.payload, message.queue]
  end

  test "everything that can be said of a message can be told" do
    send_to("resize", "--level", "synced", "--priority", "9", "--ttl", "60", "--property", "a=1", "--property", "b=x=y", "--", "-x")
    message, = waiting("resize")
    assert_equal [{"a" => "1", "b" => "x=y"}, 9, "-x"], [message.properties, message.priority, message.payload]
  end

  test "a message that is delayed does not come now" do
    send_to("resize", "later", "--delay", "3600")
    assert_empty waiting("resize")
    assert_equal 1, @broker.client { |client| client.queues.first["delayed"] }
  end

  test "the payload, or one in each line, comes from the standard input" do
    send_to("resize", "-", stdin: "a\nb")
    assert_equal 3, send_to("resize", "--lines", stdin: "c\n\nd\n").size
    assert_equal ["a\nb", "c", "", "d"], waiting("resize").map(&:payload)
  end

  test "a message can be sent many times, and none at all can be in it" do
    ids = send_to("resize", "--count", "5")
    assert_equal 5, ids.uniq.size
    assert_equal [""] * 5, waiting("resize").map(&:payload)
  end

  test "a client's queue is written with @" do
    send_to("@ann", "hello")
    assert_equal ["hello"], waiting(nil, identity: "ann").map(&:payload)
  end

  test "the environment says where the broker is" do
    assert done("send", "resize", "x", env: {"HIKYAKU_BROKER_ADDRESS" => @broker.address})
    assert done("send", "resize", "x", env: {"HIKYAKU_BROKER_SOCKET" => @broker.address.delete_prefix("unix:")})
  end

  test "a broker that is not there is one line and code 1" do
    assert_match(%r{\Ano broker answers at unix:/does/not/exist: no such file}, refused("send", "--connect", "/does/not/exist", "q", code: 1))
  end

  test "a secret is read from a file, and a wrong one is refused" do
    file = File.join(@broker.folder, "secret")
    File.write(file, "the secret of the broker, at length\n", perm: 0o600)
    guarded = RunningBroker.new(broker_secret_file: file)
    assert done("send", *guarded.flags, "--secret-file", file, "q", "x")
    assert done("send", *guarded.flags, "q", "x", env: {"HIKYAKU_BROKER_SECRET_FILE" => file})
    assert_match(/secret or a token/, refused("send", *guarded.flags, "q", "x", code: 1))
    message = refused("send", *guarded.flags, "--token", "t0ken", "q", "x", code: 1)
    refute_includes message, "t0ken"
    refute_includes refused("send", *guarded.flags, "q", "x", code: 1, env: {"HIKYAKU_BROKER_TOKEN" => "t0ken"}), "t0ken"
    File.chmod(0o644, file)
    message = refused("send", *guarded.flags, "--secret-file", file, "q", "x")
    ["can be read by every user", "chmod o-rwx #{file}"].each { |part| assert_includes message, part }
  ensure
    guarded&.close
  end

  test "a command in a process of its own reads the secret from a file" do
    file = File.join(@broker.folder, "secret")
    File.write(file, "the secret of the broker, at length\n", perm: 0o600)
    output, = Open3.capture2e(RbConfig.ruby, File.expand_path("../../exe/hikyaku", __dir__), "queues", "--secret-file", file, "--connect", "/does/not/exist")
    assert_match(%r{\Ahikyaku: no broker answers at unix:/does/not/exist}, output)
  end

  # [arguments, what the message holds]
  [
    [%w[], "give a QUEUE"], [%w[--level safe q], "--level: expected memory, written or synced"], [%w[--priority 10 q], "priority"],
    [%w[--priority x q], "--priority: expected a whole number"], [%w[--delay soon q], "--delay: expected a number of seconds from 0 to 4294966, got \"soon\""],
    [%w[--delay 99999999999 q], "--delay: expected a number of seconds from 0 to 4294966, got \"99999999999\""], [%w[--ttl 4294967 q], "--ttl: expected a number of seconds from 0 to 4294966"],
    [%w[--ttl -1 q], "--ttl"], [%w[--property x q], "expected NAME=VALUE"], [%w[--property =x q], "expected NAME=VALUE"],
    [%w[--count 0 q], "--count: expected a whole number from 1"], [%w[--lines q x], "give no PAYLOAD"], [%w[--secret-file /does/not/exist q], "cannot be read: no such file"],
    [["q" * 256], "1 to 255 bytes"], [%w[--connect nowhere q], "is not the address of a broker"]
  ].each_with_index do |(arguments, part), index|
    test "wrong request #{index} is refused" do
      connect = arguments.include?("--connect") ? [] : @broker.flags
      assert_includes refused("send", *connect, *arguments), part
    end
  end
end
