# frozen_string_literal: true

require_relative "hikyaku/error"
require_relative "hikyaku/version"
require_relative "hikyaku/server/sidecar/folder"
require_relative "hikyaku/config"
require_relative "hikyaku/hub"
require_relative "hikyaku/server/reactor"
require_relative "hikyaku/client/publisher"
require_relative "hikyaku/server/relay"
require_relative "hikyaku/client/event_source"
require_relative "hikyaku/web"
require_relative "hikyaku/server"

# Real-time and durable delivery for Ruby: one gem, one process, no Redis.
#
# A process either holds the hub itself,
#
#     run Hikyaku.start(publisher_key: ENV.fetch("KEY"), subscriber_key: ENV.fetch("KEY"))   # config.ru
#
# or publishes to the process that does:
#
#     Hikyaku.connect("unix:/run/hikyaku.sock", key: ENV.fetch("KEY"))
#
# or has a hub beside it, which `plugin :hikyaku` of Puma runs (Server::Relay), or which the server of the same Rails application has in
# development. In all of them, `Hikyaku.publish` reaches the subscribers; anywhere else it raises.
module Hikyaku
  @lock = Mutex.new
  @web = @host = @publisher = @local = @beside = nil

  class << self
    # Makes the hub that this process holds. It can be mounted, or run, as a Rack application.
    #
    # @param config [Config, nil]
    # @param logger [Logger, nil]
    # @param settings [Hash] in place of a configuration, the settings one by one: see Config
    # @return [Web]
    # @raise [ConfigError] the settings do not fit together
    def start(config = nil, logger: nil, **settings)
      host(Hikyaku::Web.new(config || Hikyaku::Config.new(**settings), logger: logger))
    end

    # Declares that this process holds a hub, and which.
    #
    # @param web [Web]
    # @return [Web]
    def host(web)
      @lock.synchronize do
        @web = web
        @host = Process.pid
      end
      web
    end

    # Publishes to a hub in another process from now on.
    #
    # @param target [String] see Publisher#initialize
    # @param options [Hash] see Publisher#initialize
    # @return [Publisher]
    # @raise [ConfigError] the target or the options cannot be used
    def connect(target, **options)
      publisher = Hikyaku::Publisher.new(target, **options)
      @lock.synchronize { @publisher = publisher }
    end

    # @return [Web, nil] the hub that this process holds, as a Rack application
    def web = (@host == Process.pid) ? @web : nil

    # @return [Hub, nil] the hub that this process holds
    def hub = web&.hub

    # Publishes an update: to this process's hub, or to the one that it is connected to.
    #
    # Mercure draft-08, section "Publication".
    #
    # @param topics [String, Array<String>] the canonical topic, then alternates
    # @param data [String, Object] the content; anything but a String becomes JSON
    # @param options [Hash] `private:`, `id:`, `type:`, `retry_after:` and `idempotency_key:`, see Publisher#publish
    # @return [String] the event id
    # @raise [NoHub] this process neither holds a hub nor is connected to one
    # @raise [InvalidTopic, InvalidUpdate, PublishError] see Publisher#publish
    def publish(topics, data = "", **options)
      publisher.publish(topics, data, **options)
    end

    # Closes all streams of a subject, here or at the hub that this process is connected to.
    #
    # @param subject [String] the `sub` of its tokens
    # @param revoke [Boolean] also refuse the tokens that it got before now
    # @return [Integer] how many streams are closed
    # @raise [NoHub] this process neither holds a hub nor is connected to one
    # @raise [ArgumentError] the subject is empty, or no String, and no token has it
    def disconnect(subject:, revoke: false)
      return web.disconnect(subject: subject, revoke: revoke) if web
      publisher.disconnect(subject: subject, revoke: revoke)
    end

    # Forgets hub and connection. For tests and for servers that stop.
    #
    # @return [void]
    def reset
      @lock.synchronize do
        @publisher&.close
        @beside&.last&.close
        @web = @host = @publisher = @local = @beside = nil
      end
    end

    private

    def publisher
      hub = self.hub
      return local(hub) if hub
      @publisher || beside or raise NoHub, "no hub is known here, so the update would reach no subscriber: #{absence}; " \
        "start the server, or say where the hub is: HIKYAKU_SIDECAR names the folder of a Puma with `plugin :hikyaku`; or set the hub's " \
        "address (Hikyaku.connect, or in Rails config.hikyaku.hub, which the generated initializer takes from HIKYAKU_HUB)"
    end

    def absence
      folder = Hikyaku::Server::Sidecar::Folder.default
      folder ? "no server of this application and this user answers in #{folder}" : "this process holds no hub and is connected to none"
    end

    # To the hub that Puma runs beside its workers, when the environment says that there is one; else to the server that runs.
    # A process that lives longer than the server finds the next one: there the key is another.
    def beside
      folder = Hikyaku::Server::Sidecar::Folder.named || Hikyaku::Server::Sidecar::Folder.found or return
      edition = folder.edition
      known, publisher = @beside
      return publisher if publisher && (known == edition || edition.nil?)
      about = folder.about
      fresh = Hikyaku::Publisher.new("unix:#{folder.socket}:#{about[:path]}", key: about[:key], issuer: about[:issuer], audience: about[:resource_identifier])
      @lock.synchronize { @beside = [edition, fresh] }
      publisher&.close
      fresh
    end

    def local(hub)
      @lock.synchronize do
        @local = [hub, Hikyaku::Publisher.new(hub)] unless @local&.first.equal?(hub)
        @local.last
      end
    end
  end

  # A publish in a process that neither holds a hub nor is connected to one.
  class NoHub < StandardError
    include Error
  end
end

require_relative "hikyaku/rails/railtie" if defined?(::Rails::Railtie)
