# frozen_string_literal: true

require "logger"
require "puma"
require "puma/server"
require "hikyaku/config"
require "hikyaku/web"
require_relative "access_tokens"
require_relative "http_client"
require_relative "puma_buffers"

# A hub with real sockets, in this process. Tests with the same settings share one. The environment says which:
#
#     HIKYAKU_TEST_ENGINE   c (unless told otherwise) or ruby
#     HIKYAKU_TEST_SERVER   own (unless told otherwise): Hikyaku::Server; or puma, in which the hub is mounted
class HubServer
  ENGINE = ENV.fetch("HIKYAKU_TEST_ENGINE", "c")
  OWN = ENV.fetch("HIKYAKU_TEST_SERVER", "own") == "own"
  # What the shared hubs are unless a test says otherwise. The hub's URL is not the address that it listens on: behind
  # a proxy it never is.
  SETTINGS = {
    listen: "127.0.0.1:0", resource_identifier: AccessTokens::HUB_URL, issuer: AccessTokens::ISSUER,
    publisher_key: AccessTokens::SECRETS[:publisher], subscriber_key: AccessTokens::SECRETS[:subscriber],
    anonymous: true, subscriptions: true, engine: ENGINE
  }.freeze

  @shared = {}
  class << self
    # @return [HubServer] stopped when the tests are over
    def shared(**settings)
      Minitest.after_run { @shared.each_value(&:stop) } if @shared.empty?
      @shared[settings] ||= new(**settings)
    end
  end

  # @return [Hikyaku::Web]
  attr_reader :web
  # @return [Integer]
  attr_reader :port
  # @return [HttpClient]
  attr_reader :client

  # @param wrap [#call, nil] makes the application that Puma gets from the hub's; then it is Puma that serves
  # @param tls [Puma::MiniSSL::Context, nil]
  # @param settings [Hash] of Hikyaku::Config, beside {SETTINGS}
  def initialize(wrap: nil, tls: nil, **settings)
    config = Hikyaku::Config.new(**SETTINGS.merge(settings).reject { |_, value| value == :absent })
    (OWN && wrap.nil? && tls.nil?) ? serve(config) : serve_on_puma(config, wrap, tls)
    @client = HttpClient.new(@port, tls: !tls.nil?)
  end

  def hub = @web.hub

  def path = hub.hub_path

  def stop
    return @server.stop if @server
    @web.shutdown
    @puma.stop(true)
  end

  private

  def serve(config)
    require "hikyaku/server"
    @server = Hikyaku::Server.new(config, logger: Logger.new(IO::NULL)).start
    @web = @server.app
    @port = @server.config.address.port
  end

  def serve_on_puma(config, wrap, tls)
    @web = Hikyaku::Web.new(config)
    @puma = Puma::Server.new(wrap ? wrap.call(@web) : @web, nil, min_threads: 1, max_threads: 5, environment: "production",
      supported_http_methods: :any, log_writer: Puma::LogWriter.null, max_keep_alive: 1_000_000, first_data_timeout: 5)
    tls ? @puma.add_ssl_listener("127.0.0.1", 0, tls) : @puma.add_tcp_listener("127.0.0.1", 0)
    @port = @puma.connected_ports.first
    @thread = @puma.run
  end
end
