# frozen_string_literal: true

require "test_helper"
require "json"
require "minitest/mock"
require "socket"
require "tmpdir"
require "support/broker_script"

# How the client says who it is, and what it does when it is refused.
class BrokerClientIdentityTest < Minitest::Test
  include BrokerScript

  test "HELLO says who it is, and a rising epoch" do
    hellos = Queue.new
    greet = ->(peer) { peer.welcome.then { hellos << peer.hello } }
    broker(greet, ->(peer) { greet.call(peer).then { serve(peer) } })
    client(identity: "ann", secret: "s3cret", agent: "test 1", heartbeat: 3)
    first, second = hellos.pop, hellos.pop
    assert_equal ["ann", "s3cret", "test 1", 3000, 1, 1, 1], [first.identity, first.credentials, first.agent, first.heartbeat, first.authentication, first.lowest, first.highest]
    assert_operator second.epoch, :>, first.epoch
    assert_equal first.identity, second.identity
  end

  test "credentials of nothing are refused before it connects" do
    Dir.mktmpdir do |folder|
      [{secret: ""}, {secret: " \u00A0\n"}, {token: ""}, {token: "\0"}].each do |credentials|
        error = assert_raises(Hikyaku::ConfigError, credentials) { Client.new("unix:#{folder}/none.sock", open_timeout: 0, **credentials) }
        assert_match(/\Athe #{credentials.keys.first} is empty: give .*, or nil where the broker [a-z ]+ none\z/, error.message)
      end
    end
  end

  test "of two clients of one identity that begin in the same moment the later one has the higher epoch" do
    epochs = Array.new(100) { Client::Identity.new("ann", secret: nil, token: nil, heartbeat: 0, agent: "test") }.map do |identity|
      frame = nil
      Hikyaku::Broker::Wire::Reader.new(from: :client, max_frame: 4096).read(identity.hello(4096)) { |found, _| frame = found }
      frame.epoch
    end
    assert_equal epochs.uniq.sort, epochs
  end

  test "an identity is made where none is given, and another each time" do
    names = Queue.new
    broker(->(peer) { peer.welcome.then { names << peer.hello.identity.force_encoding("UTF-8") }.then { serve(peer) } })
    made = Array.new(2) { Client.open(@broker.address) { |each| names.pop.tap { |name| assert_equal name, each.identity } } }
    assert_equal 2, made.uniq.size
  end

  test "a token comes from what gives one, anew for each connection" do
    tokens = Queue.new
    greet = ->(peer) { peer.welcome.then { tokens << [peer.hello.authentication, peer.hello.credentials] } }
    broker(greet, ->(peer) { greet.call(peer).then { serve(peer) } })
    count = 0
    client(token: -> { "token #{count += 1}" })
    assert_equal [[2, "token 2"], [2, "token 3"]], [tokens.pop, tokens.pop]
  end

  {["*"] => "", ["a", "@web-*"] => "web-", ["a", "@ann"] => nil, [] => nil, nil => nil, "*" => "", [1] => nil}.each_with_index do |(patterns, prefix), index|
    test "with token #{index} the identity made begins as its claim permits" do
      broker(->(peer) { serve(peer.welcome) })
      token = "x.#{[JSON.generate({hikyaku: {receive: patterns}})].pack("m0").tr("+/", "-_").delete("=")}.x"
      made = client(token: token).identity
      prefix ? assert_match(/\A#{prefix}#{Socket.gethostname[0, 60]}-\d+-\w{10}\z/, made) : assert_empty(made)
    end
  end

  {Code::UNAUTHORIZED => [Client::Unauthorized, /secret or a token/], Code::VERSION => [Client::WrongVersion, /same version/],
   Code::FENCED => [Client::Fenced, /identity of its own/]}.each do |code, (type, words)|
    test "#{type.name[/\w+\z/]} ends it for good" do
      broker(->(peer) { peer.refuse(peer.read, code, scope: 2) })
      error = assert_raises(type) { client }
      assert_match words, error.message
      refute_predicate error, :retryable?
      assert_equal 1, @broker.connections
    end
  end

  def wall = Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)

  test "who begins with a clock that was set back goes on from the epoch that is still to come" do
    later = wall + 10**18
    epochs = Queue.new
    fence = ->(peer) { peer.refuse(peer.read.tap { |hello| epochs << hello.epoch }, Code::FENCED, scope: 2, delivery: later) }
    broker(fence, ->(peer) { peer.welcome.then { epochs << peer.hello.epoch }.then { serve(peer) } })
    told = Queue.new
    client(identity: "ann", on_error: ->(error) { told << error })
    assert @client.send_message("q", "x", timeout: 60)
    assert_operator epochs.pop, :<, wall
    assert_equal later + 1, epochs.pop
    assert_kind_of Client::Fenced, told.pop
  end

  {"is past" => ->(own) { own + 1 }, "leaves no room above it" => ->(_) { 2**64 - 1 }}.each do |what, epoch|
    test "an epoch that #{what} is the end for who begins" do
      broker(->(peer) { peer.read.then { |hello| peer.refuse(hello, Code::FENCED, scope: 2, delivery: epoch.call(hello.epoch)) } })
      assert_raises(Client::Fenced) { client(identity: "ann") }
      assert_equal 1, @broker.connections
    end
  end

  test "who was connected is fenced for good, whatever the epoch" do
    broker(->(peer) { peer.welcome.close }, ->(peer) { peer.refuse(peer.read, Code::FENCED, scope: 2, delivery: wall + 10**18) })
    client(identity: "ann")
    eventually { @client.closed? }
    assert_raises(Client::Fenced) { @client.send_message("q", "x") }
    assert_equal 2, @broker.connections
  end

  test "a token that has expired is followed by another, where there is what gives one" do
    broker(->(peer) { peer.welcome.then { peer.refuse(peer.read, Code::UNAUTHORIZED, "expired", scope: 2) } }, ->(peer) { serve(peer.welcome) })
    client(identity: "ann", token: -> { "token" })
    assert @client.send_message("q", "x", timeout: 60)
    @client.close
    @broker.close
    broker(->(peer) { peer.welcome.then { peer.refuse(peer.read, Code::UNAUTHORIZED, "expired", scope: 2) } })
    client(token: "token")
    assert_raises(Client::Unauthorized, Client::OutcomeUnknown) { @client.send_message("q", "x", timeout: 5) }
    eventually { @client.closed? }
  end

  test "what gives tokens may fail for a while" do
    broker(->(peer) { serve(peer.welcome) })
    count = 0
    assert_predicate client(token: -> { ((count += 1) == 2) ? raise("no network") : "token" }), :connected?
    assert_operator count, :>=, 3
  end

  test "a refusal that may pass is waited for" do
    broker(->(peer) { peer.refuse(peer.read, Code::LIMIT, "too many", scope: 2, retry_after: 10) }, ->(peer) { serve(peer.welcome) })
    assert_predicate client, :connected?
  end

  test "a refusal that does not pass in time is raised" do
    broker(->(peer) { peer.refuse(peer.read, Code::LIMIT, "too many", scope: 2, retry_after: 1500) })
    error = assert_raises(Client::LimitReached) { client(open_timeout: 0) }
    assert_equal [true, 1.5, "too many"], [error.retryable?, error.retry_after, error.message]
  end

  test "where there is no broker it says what to do, and keeps no secret" do
    error = assert_raises(Client::Unreachable) { Client.open("unix:/does/not/exist.sock", open_timeout: 0, secret: "s3cret") }
    assert_match(%r{unix:/does/not/exist.sock: no such file or directory; start one \(hikyaku broker\)}, error.message)
    assert_predicate error, :retryable?
    refute_includes error.message, "s3cret"
  end

  test "at the usual place a socket of somebody else is no broker" do
    broker(->(peer) { serve(peer.welcome) })
    address = Struct.new(:path) do
      def unix? = true

      def default? = true
    end.new(@broker.address.delete_prefix("unix:"))
    connect = -> { Client::Transport.connect(address, lock: Mutex.new, max_frame: 4096) }
    connect.call.close
    File.stub(:lstat, Struct.new(:uid).new(Process.euid + 1)) do
      assert_match(/belongs to another user/, assert_raises(Client::Transport::Broken) { connect.call }.message)
    end
  end

  test "what is no broker is told from one that is away" do
    broker(->(peer) { peer.write("HTTP/1.1 400 Bad Request\r\n\r\n").then { peer.read_to_end } })
    assert_match(/does not speak the broker's protocol/, assert_raises(Client::NotUnderstood) { client(open_timeout: 0) }.message)
  end

  test "a secret and a token at once, and names that are too long, are refused" do
    assert_raises(ArgumentError) { Client.new("a:1", secret: "x", token: "y") }
    assert_raises(ArgumentError) { Client.new("a:1", identity: "x" * 256) }
    assert_raises(Hikyaku::ConfigError) { Client.new("nowhere") }
  end

  test "inspect shows no credentials" do
    broker(->(peer) { serve(peer.welcome) })
    refute_includes client(secret: "s3cret").inspect, "s3cret"
  end
end
