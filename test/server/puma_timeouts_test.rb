# frozen_string_literal: true

require "test_helper"
require "logger"
require "puma"
require "puma/server"
require "rbconfig"
require "stringio"
require "hikyaku/server/puma_timeouts"
require "support/drippers"

class PumaTimeoutsTest < Minitest::Test
  include Drippers

  # Seconds that a server of these tests gives a request's head, and a connection without a request.
  HEAD = 3
  IDLE = 2
  APPLICATION = ->(env) { [200, {"content-length" => "2"}, [env["rack.input"].read.bytesize.to_s.rjust(2)]] }
  # Programs that have both, after which no fault is left.
  PROGRAMS = {
    "a hub that is made when Puma is there" => "require 'puma/server'; Hikyaku.start(anonymous: true, engine: 'ruby')",
    "a hub that Puma is loaded after" => "web = Hikyaku.start(anonymous: true, engine: 'ruby'); require 'puma/server'; web.call('REQUEST_METHOD' => 'GET', 'PATH_INFO' => '/')",
    "a worker with the hub beside it" => "require 'puma/server'; Hikyaku::Server::Relay.new",
    "the server of the engine in Ruby" => "require 'hikyaku/server/http'; require 'logger'; require 'ostruct'; " \
      "Hikyaku::Server::Http.new(nil, logger: Logger.new(IO::NULL), listener: OpenStruct.new(sockets: []), threads: 1, max_request_bytes: 1024)"
  }.freeze

  def setup
    @log = StringIO.new
    @sockets = []
    Hikyaku::Server::PumaTimeouts.install(Logger.new(@log))
  end

  def teardown
    @sockets.each(&:close)
    @server&.stop(true)
  end

  test "clients that send a byte at a time do not keep others from their timeouts" do
    start
    drippers = drip(5)
    slow_head = connect("GET / HTTP/1.1\r\nHos")
    idle = connect("GET / HTTP/1.1\r\nHost: a\r\n\r\n").tap { |socket| assert_match(/\AHTTP\/1\.1 200 /, read_answer(socket)) }
    silent = connect
    {"a slow head" => slow_head, "an idle connection" => idle, "a silent connection" => silent}.each { |name, socket| assert_ended socket, name }
    drippers.each { |dripper| assert_ended dripper.socket, "a head in drips" }
  end

  test "a body in drips is told 408, and one that keeps its pace is a body" do
    start
    dripping = drip(1, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n", "x" * 1000).first
    chunked = drip(1, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n" * 1000).first
    paced = drip(1, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000\r\n\r\n", "x" * 10_000, by: 200).first
    assert_match(/\AHTTP\/1\.1 408 /, read_answer(dripping.socket))
    assert_match(/\AHTTP\/1\.1 408 /, read_answer(chunked.socket))
    assert_match(/\AHTTP\/1\.1 200 /, read_answer(paced.socket))
  end

  test "each request of a connection has the whole time for its head" do
    start
    socket = connect
    3.times do
      drip_on(socket, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", by: 2)
      assert_match(/\AHTTP\/1\.1 200 /, read_answer(socket))
    end
  end

  test "this Puma has the fault, and with the guard it has not" do
    assert_equal "true\n", run_ruby("require 'puma'; require 'puma/server'; require 'hikyaku/server/puma_timeouts'; p Hikyaku::Server::PumaTimeouts.needed?"),
      "Puma is mended: the guard can go"
    refute Hikyaku::Server::PumaTimeouts.needed?
  end

  test "a Puma without the fault is left alone" do
    mended = "Puma::Reactor.prepend(Module.new { private def wakeup!(client) = super.tap { @timeouts.sort_by!(&:timeout_at) } })"
    script = "require 'puma'; require 'puma/server'; require 'hikyaku/server/puma_timeouts'; #{mended}; " \
      "p Hikyaku::Server::PumaTimeouts.needed?, Hikyaku::Server::PumaTimeouts.install(nil), Puma::Client.ancestors.first"
    assert_equal "false\ntrue\nPuma::Client\n", run_ruby(script)
  end

  PROGRAMS.each do |name, program|
    test "#{name} is guarded" do
      assert_equal "false\n", run_ruby("require 'puma'; require 'hikyaku'; #{program}; p Hikyaku::Server::PumaTimeouts.needed?; exit!")
    end
  end

  test "what is done is said once" do
    lines = run_ruby("require 'logger'; require 'puma'; require 'puma/server'; require 'hikyaku/server/puma_timeouts'; 3.times { Hikyaku::Server::PumaTimeouts.install(Logger.new($stdout)) }").lines
    assert_equal 1, lines.size, lines.join
    assert_includes lines.first, "Puma #{Puma::Const::PUMA_VERSION}"
  end

  test "without Puma it does nothing" do
    assert_equal "false\nnil\n", run_ruby("require 'hikyaku/server/puma_timeouts'; p Hikyaku::Server::PumaTimeouts.install(nil), defined?(Puma)")
  end

  private

  # @return [String] what a Ruby of its own writes
  def run_ruby(script) = IO.popen([RbConfig.ruby, "-I", File.expand_path("../../lib", __dir__), "-e", "$stdout.sync = true; #{script}", {err: IO::NULL}], &:read)

  def start
    @server = Puma::Server.new(APPLICATION, nil, min_threads: 1, max_threads: 3, log_writer: Puma::LogWriter.null, first_data_timeout: HEAD, persistent_timeout: IDLE)
    @server.add_tcp_listener("127.0.0.1", 0)
    @port = @server.connected_ports.first
    @server.run
  end
end
