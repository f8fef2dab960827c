# frozen_string_literal: true

require "hikyaku/server/relay"
require "hikyaku/server"
require "logger"
require "puma"
require "puma/server"
require "tmpdir"
require_relative "hub_server"

# A hub behind a relay, both in this process: Hikyaku::Server, which listens on a Unix socket and takes connections over, and
# Puma, whose application is a Relay. Of the same interface as HubServer.
class RelayedHub
  # @return [Hikyaku::Web]
  attr_reader :web
  # @return [Integer]
  attr_reader :port
  # @return [HttpClient]
  attr_reader :client
  # @return [Hikyaku::Server::Sidecar::Folder]
  attr_reader :folder

  # @param app [#call, nil] behind the relay
  # @param tls [Puma::MiniSSL::Context, nil]
  # @param wrap [#call, nil] makes the application that Puma gets of the relay
  # @param settings [Hash] of Hikyaku::Config, beside HubServer's
  def initialize(app: nil, tls: nil, wrap: nil, **settings)
    @folder = Hikyaku::Server::Sidecar::Folder.new(Dir.mktmpdir("relay"), temporary: true)
    @settings = HubServer::SETTINGS.merge(engine: "c", listen: "unix:#{@folder.socket}", handover: @folder.handover, **settings).reject { |_, value| value == :absent }
    start
    config = @server.config
    @folder.tell(path: config.path, resource_identifier: config.resource_identifier, hub_url: config.hub_url, max_request_bytes: config.max_request_bytes)
    relay = Hikyaku::Server::Relay.new(app, folder: @folder)
    serve(wrap ? wrap.call(relay) : relay, tls)
    @client = HttpClient.new(@port, tls: !tls.nil?)
  end

  def hub = @web.hub

  def path = hub.hub_path

  # The hub's own process, so to speak.
  def start
    @server = Hikyaku::Server.new(Hikyaku::Config.new(**@settings), logger: Logger.new(nil)).start
    @web = @server.app
  end

  # The hub goes away; the relay stays.
  def halt = @server.stop

  def stop
    @server.stop
    Hikyaku::Server::Relay.shutdown
    @puma.stop(true)
    @folder.remove
  end

  private

  def serve(app, tls)
    @puma = Puma::Server.new(app, nil, min_threads: 1, max_threads: 5, environment: "production", supported_http_methods: :any,
      log_writer: Puma::LogWriter.null, max_keep_alive: 1_000_000, first_data_timeout: 5)
    tls ? @puma.add_ssl_listener("127.0.0.1", 0, tls) : @puma.add_tcp_listener("127.0.0.1", 0)
    @port = @puma.connected_ports.first
    @puma.run
  end
end
