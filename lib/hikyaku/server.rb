# frozen_string_literal: true

require_relative "config"
require_relative "error"
require_relative "server/middleware"
require_relative "server/sidecar/hub_process"
require_relative "server/listener"
require_relative "server/log"
require_relative "server/open_files"
require_relative "server/signal_handling"
require_relative "web/engine_choice"

module Hikyaku
  # The standalone process: a hub and its Rack application, on the loop of the engine in C, or on Puma.
  #
  #     server = Hikyaku::Server.new(Hikyaku::Config.new(dev: true))
  #     server.run          # until TERM or INT; returns the exit code
  #
  # A stop is graceful: no new connections, subscribers closed with a time to come back, requests finished within a few
  # seconds. A second signal ends the process at once.
  class Server
    include SignalHandling

    # For Puma to end, with the seconds that Http gives its threads.
    STOP_SECONDS = 8
    private_constant :STOP_SECONDS

    # @return [Config] with the address and the limits that hold, once started
    attr_reader :config
    # @return [#call, nil] the Rack application, once started
    attr_reader :app
    # @return [Broker::Server, nil] the broker in the same process, where the configuration has one
    attr_reader :broker

    # @param config [Config]
    # @param logger [Logger, nil] to standard error unless given
    # @param build [#call, nil] makes the Rack application from a configuration and a logger; Web unless given. It may
    #   have `shutdown`
    def initialize(config, logger: nil, build: nil)
      @config = config
      @logger = logger || Log.new($stderr, level: config.log_level, format: config.log_format)
      @build = build || method(:web)
    end

    # Listens, in threads of its own.
    #
    # @return [self]
    # @raise [CannotListen]
    # @raise [ConfigError]
    # @raise [NativeUnavailable] the engine in C is not there, and this is neither developer mode nor was the one in Ruby asked for
    # @raise [Error] what the broker's storage says
    def start
      @config = Web::EngineChoice.settle(@config, logger: @logger)
      # Who can connect is served: not before what is kept was read.
      @listener = Listener.new(@config.address, listening: false)
      @config = @config.with(listen: @listener.address.to_s) if @config.address.port == 0
      remarks = settle_limits
      @app = @build.call(@config, @logger)
      @http = native if @config.engine == "c"
      @broker = beside
      @app.broker = -> { @broker.metrics.overview } if @broker && @app.respond_to?(:broker=)
      @listener.listen
      @http ||= puma
      @thread = @http.run
      @handover = take_over
      @config.doubts.each { |doubt| @logger.warn(doubt) }
      remarks.each { |level, remark| @logger.public_send(level, remark) }
      @logger.info("listening on #{@config.listen}, hub at #{@config.hub_url}, for #{@config.max_connections} subscribers")
      self
    rescue
      @listener&.close
      @broker&.stop
      @app.shutdown if @app.respond_to?(:shutdown)
      raise
    end

    # Starts, tells the block, and waits for a signal.
    #
    # @yieldparam server [Server] when it listens
    # @yieldparam stop [#call] says that it is time to stop, as a first signal does
    # @return [Integer] the exit code: 0, or 1 when the server ended by itself
    # @raise [CannotListen]
    # @raise [ConfigError]
    def run
      until_signalled(at_once: -> { @listener.close }) do |signals|
        start
        yield self, -> { signals.tell("command") } if block_given?
        watch(signals)
      end
    ensure
      @listener&.close
    end

    # Stops gracefully. Harmless when repeated.
    #
    # Requests first, then the streams: what is acknowledged to a publisher until then still reaches the subscribers. The
    # broker, meanwhile, lets its receivers finish.
    #
    # @return [Boolean] false: the broker's storage has failed, as the log says
    def stop
      return true unless @http
      @stopping = true
      finishing = Thread.new { @broker.stop } if @broker
      @handover&.close
      @http.stop
      # On one loop the hub's streams end when the broker's receivers have finished.
      finished = @thread.join(STOP_SECONDS + (@broker ? @config.broker_drain : 0))
      @app.shutdown if @app.respond_to?(:shutdown)
      @logger.warn("some requests were cut off") unless finished
      @listener.close
      @http = nil
      finishing ? finishing.value : true
    end

    # Reads the files of keys again, and fetches the key sets of URLs again.
    #
    # @return [void]
    def reload
      @app.reload if @app.respond_to?(:reload)
      @broker&.reload
    end

    # @return [String] under which a client on this machine reaches the hub
    def url = @config.address.url(@config.path)

    # @return [String] without the settings
    def inspect = "#<#{self.class.name} #{@config.listen}#{" stopped" unless @http}>"

    private

    def puma
      require_relative "server/http"
      Http.new(front, logger: @logger, listener: @listener, threads: @config.threads, max_request_bytes: @config.max_request_bytes, files: @files)
    end

    def native
      require_relative "server/native"
      Native.new(front, reactor: @app.respond_to?(:reactor) ? @app.reactor : Native.reactor(@config, @logger),
        config: @config, logger: @logger, listener: @listener, files: @files)
    end

    # The broker, with the same engine and in C on the same loop.
    def beside
      return unless @config.broker
      require_relative "broker/server"
      Broker::Server.new(@config, logger: @logger, reactor: (@app.reactor if @config.engine == "c"), connections: @clients).start
    end

    # Connections that other processes have accepted.
    def take_over
      return unless @config.handover
      require_relative "server/handover"
      Handover::Receiver.new(@config.handover, logger: @logger) { |socket, request| @app.reactor.adopt(socket, request) }
    rescue SystemCallError => error
      raise CannotListen, "cannot take connections over at #{@config.handover}: #{error.class.new.message.downcase}"
    end

    # The application, with what stands before it.
    def front
      app = DateHeader.new(HealthEndpoints.new(@app, metrics: metrics, ready: -> { !@stopping }))
      @logger.debug? ? RequestLog.new(app, @logger) : app
    end

    def metrics
      Metrics.new(@app.hub, refusals: @app.refusals, reactor: @app.reactor, broker: -> { @broker&.metrics }) if @config.metrics && @app.respond_to?(:refusals)
    end

    def web(config, logger)
      require_relative "web"
      Web.new(config, logger: logger)
    end

    # @return [Array<Array(Symbol, String)>] what to log about it once the server listens: an error stands alone
    def settle_limits
      limit = @files = OpenFiles.raise_limit
      @clients, @files = OpenFiles.for_both(limit, @config.broker_max_connections, subscribers: @config.max_connections) if @config.broker
      most = OpenFiles.for_subscribers(@files, native: @config.engine == "c")
      remarks = [[:info, "#{limit} files may be open"]]
      if @config.max_connections.nil?
        @config = @config.with(max_connections: most)
      elsif @config.max_connections > most
        remarks << [:warn, "max_connections is #{@config.max_connections}, but only #{limit} files may be open; raise the limit of the process (ulimit -n)"]
      end
      remarks
    end

    # Says when the server ends without having been told to.
    def watch(signals)
      Thread.new { @thread.join && signals.tell("END") }
      Thread.new { @broker.wait && signals.tell("END") } if @broker
    end

    def fail_early
      @broker&.ended? ? @broker.log_failure : @logger.error("the server ended by itself")
      @app.shutdown if @app.respond_to?(:shutdown)
      1
    end
  end
end
