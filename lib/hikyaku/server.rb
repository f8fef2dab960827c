# frozen_string_literal: true

require_relative "config"
require_relative "error"
require_relative "server/http"
require_relative "server/listener"
require_relative "server/log"
require_relative "server/open_files"
require_relative "server/request_log"
require_relative "server/signals"

module Hikyaku
  # The standalone process: a hub and its Rack application on Puma.
  #
  #     server = Hikyaku::Server.new(Hikyaku::Config.new(dev: true))
  #     server.run          # until TERM or INT; returns the exit code
  #
  # A stop is graceful: no new connections, subscribers closed with a time to come back, requests finished within a few
  # seconds. A second signal ends the process at once.
  class Server
    # For Puma to end, with the seconds that Http gives its threads.
    STOP_SECONDS = 8
    private_constant :STOP_SECONDS

    # @return [Config] with the address and the limits that hold, once started
    attr_reader :config
    # @return [#call, nil] the Rack application, once started
    attr_reader :app

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
    def start
      @listener = Listener.new(@config.address)
      @config = @config.with(listen: @listener.address.to_s) if @config.address.port == 0
      remarks = settle_limits
      @app = @build.call(@config, @logger)
      @http = Http.new(@logger.debug? ? RequestLog.new(@app, @logger) : @app, logger: @logger, listener: @listener,
        threads: @config.threads, max_request_bytes: @config.max_request_bytes)
      @thread = @http.run
      @config.doubts.each { |doubt| @logger.warn(doubt) }
      remarks.each { |level, remark| @logger.public_send(level, remark) }
      @logger.info("listening on #{@config.listen}, hub at #{@config.hub_url}, for #{@config.max_connections} subscribers")
      self
    rescue
      @listener&.close
      raise
    end

    # Starts, tells the block, and waits for a signal.
    #
    # @yield [server] when it listens
    # @return [Integer] the exit code: 0, or 1 when the server ended by itself
    # @raise [CannotListen]
    # @raise [ConfigError]
    def run
      signals = Signals.new.install
      start
      yield self if block_given?
      watch(signals)
      name = signals.wait
      return fail_early if name == "END"

      @logger.info("stopping on #{name}")
      impatience = hurry(signals)
      stop
      @logger.info("stopped")
      0
    ensure
      impatience&.kill
      signals&.restore
      @listener&.close
    end

    # Stops gracefully. Harmless when repeated.
    #
    # Requests first, then the streams: what is acknowledged to a publisher until then still reaches the subscribers.
    #
    # @return [void]
    def stop
      return unless @http
      @http.stop
      finished = @thread.join(STOP_SECONDS)
      @app.shutdown if @app.respond_to?(:shutdown)
      @logger.warn("some requests were cut off") unless finished
      @listener.close
      @http = nil
    end

    # @return [String] under which a client on this machine reaches the hub
    def url = @config.address.url(@config.path)

    # @return [String] without the settings
    def inspect = "#<#{self.class.name} #{@config.listen}#{" stopped" unless @http}>"

    private

    def web(config, logger)
      require_relative "web"
      Web.new(config, logger: logger)
    end

    # @return [Array<Array(Symbol, String)>] what to log about it once the server listens: an error stands alone
    def settle_limits
      files = OpenFiles.raise_limit
      most = OpenFiles.for_subscribers(files)
      remarks = [[:info, "#{files} files may be open"]]
      if @config.max_connections.nil?
        @config = @config.with(max_connections: most)
      elsif @config.max_connections > most
        remarks << [:warn, "max_connections is #{@config.max_connections}, but only #{files} files may be open; raise the limit of the process (ulimit -n)"]
      end
      remarks
    end

    # Says when the server ends without having been told to.
    def watch(signals)
      Thread.new { @thread.join && signals.tell("END") }
    end

    # A second signal: whoever sends it does not want to wait.
    def hurry(signals)
      Thread.new do
        nil until Signals::STOP.include?(signals.wait)
        @listener.close
        exit!(1)
      end
    end

    def fail_early
      @logger.error("the server ended by itself")
      @app.shutdown if @app.respond_to?(:shutdown)
      1
    end
  end
end
