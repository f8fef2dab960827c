# frozen_string_literal: true

require "test_helper"
require "hikyaku/broker/server"
require "hikyaku/broker/server/reactor"
require "hikyaku/server/log"
require "stringio"
require "support/scripted_engine"
require "timeout"
require "tmpdir"

class BrokerServerTest < Minitest::Test
  Server = Hikyaku::Broker::Server

  # A server whose driver is what the test gives it.
  class Driven < Server
    attr_writer :driver

    private

    def driver(_options) = @driver
  end

  # A driver whose thread ends without a word.
  class Careless
    def listen(listener) = @listener = listener

    def start
      Thread.new do
        Thread.current.report_on_exception = false
        raise NoMemoryError, "failed to allocate memory"
      ensure
        @listener.close
      end
    end

    def abandon
    end
  end

  def setup
    @folder = Dir.mktmpdir
    @log = StringIO.new
    @logger = Hikyaku::Server::Log.new(@log)
    config = Hikyaku::Config.load(flags: {engine: "ruby", broker_socket: "#{@folder}/broker.sock"}, serving: :broker)
    @server = Driven.new(config, logger: @logger)
  end

  def teardown
    @client&.close
    FileUtils.rm_rf(@folder)
  end

  def run_server(&block) = Timeout.timeout(60, Minitest::Assertion, "the server does not notice that it has ended") { @server.run(&block) }

  {"F" => "a failed storage", "M" => "a want of memory"}.each do |letter, name|
    test "a server that has ended by #{name} says why, and its code is 1" do
      @server.driver = Server::Reactor.new(ScriptedEngine.new, logger: @logger)
      code = run_server do
        @client = UNIXSocket.new("#{@folder}/broker.sock")
        @client.write(letter)
      end
      assert_equal 1, code
      assert_match(/the broker has failed and accepts nothing more: (cannot write|failed to allocate)/, @log.string)
    end
  end

  test "a server that cannot serve its metrics leaves neither a socket nor a thread" do
    taken = TCPServer.new("127.0.0.1", 0)
    flags = {engine: "ruby", broker_socket: "#{@folder}/broker.sock", broker_metrics: "127.0.0.1:#{taken.local_address.ip_port}"}
    server = Server.new(Hikyaku::Config.load(flags: flags, serving: :broker), logger: @logger)
    assert_raises(Hikyaku::Server::CannotListen) { server.start }
    refute_path_exists "#{@folder}/broker.sock"
    refute_includes Thread.list.map(&:name), "hikyaku-broker"
  ensure
    taken&.close
  end

  test "a server whose driver ends without a word says why, and its code is 1" do
    @server.driver = Careless.new
    assert_equal 1, run_server
    assert_match(/the broker has failed and accepts nothing more: failed to allocate/, @log.string)
    assert_match(/NoMemoryError at/, @log.string)
  end
end
