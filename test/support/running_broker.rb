# frozen_string_literal: true

require "fileutils"
require "hikyaku/broker/client"
require "hikyaku/broker/server"
require "logger"
require "tmpdir"

# A broker in this process, on a Unix socket in a folder of its own, with storage.
#
#     broker = RunningBroker.new
#     broker.client { |client| … }
#     broker.restart
#     broker.close
class RunningBroker
  # @param engine [String]
  # @param settings [Hash] of Config
  def initialize(engine: ENV.fetch("HIKYAKU_TEST_ENGINE", "ruby"), **settings)
    @folder = Dir.mktmpdir("hikyaku-broker")
    @settings = {engine: engine, storage: @folder, broker_socket: "#{@folder}/b.sock", broker_drain: 1, **settings}
    start
  end

  def address = "unix:#{@folder}/b.sock"

  attr_reader :folder

  def client(**options, &block) = Hikyaku::Broker::Client.open(address, **options, &block)

  # What a command is told.
  def flags = ["--connect", address]

  def start
    config = Hikyaku::Config.load(flags: @settings, serving: :broker)
    @server = Hikyaku::Broker::Server.new(config, logger: Logger.new(IO::NULL)).start
  end

  def stop = @server.stop

  def restart
    stop
    start
  end

  def close
    stop
    FileUtils.rm_rf(@folder)
  end
end
