# frozen_string_literal: true

require "fileutils"
require_relative "../broker"
require_relative "../config"
require_relative "../server/open_files"
require_relative "../server/listener"
require_relative "../server/signal_handling"
require_relative "address"
require_relative "server/auth_pool"
require_relative "server/authenticator"
require_relative "server/engine_options"
require_relative "server/metrics"

module Hikyaku
  module Broker
    # The broker cannot store messages in its folder.
    class CannotStore < StandardError
      include Error
    end

    # A broker: its engine, its listeners, its authentication and its shutdown.
    #
    #     server = Hikyaku::Broker::Server.new(Hikyaku::Config.load(serving: :broker), logger: logger)
    #     server.run          # until TERM or INT; returns the exit code
    #
    # A stop is graceful: the broker accepts no connections and messages, receivers finish within `broker_drain` seconds, and the journal is
    # closed. A second signal kills the process, which loses what was not acknowledged.
    #
    # docs/protocol.md, sections 10 and 11.
    class Server
      include Hikyaku::Server::SignalHandling

      # A client that can open the socket may do everything, so only the user of the process can.
      SOCKET_MODE = 0o600
      NO_SOCKET = "none"
      private_constant :SOCKET_MODE, :NO_SOCKET

      # @return [Config]
      attr_reader :config
      # @return [Array<Config::Address>] where it listens, once started
      attr_reader :addresses
      # @return [Config::Address, nil] where it serves its metrics over HTTP
      attr_reader :metrics_address

      # @param config [Config]
      # @param logger [Logger]
      # @param reactor [Hikyaku::Server::NativeReactor, nil] the hub's loop, which is to serve the broker, too; nil: the broker has its own
      # @param connections [Integer, nil] clients for which a hub in the same process leaves room; nil: there is no hub
      def initialize(config, logger:, reactor: nil, connections: nil)
        @config = config
        @logger = logger
        @reactor = reactor
        @connections = connections
        @addresses = []
      end

      # Opens the storage, and listens in threads of its own.
      #
      # @return [self]
      # @raise [Hikyaku::Server::CannotListen]
      # @raise [CannotStore, Log::Journal::Locked, Log::Journal::Corrupt, Log::Journal::Interrupted]
      # @raise [ConfigError]
      # @raise [NativeUnavailable]
      def start
        files = Hikyaku::Server::OpenFiles.raise_limit
        @connections ||= Hikyaku::Server::OpenFiles.for_broker(files, @config.broker_max_connections)
        @authenticator = Authenticator.of(@config, logger: @logger)
        @auth_pool = AuthPool.new(@authenticator, logger: @logger) if @authenticator
        @driver = driver(EngineOptions.of(@config, storage: storage, connections: @connections))
        listen
        @metrics_server = serve_metrics
        @thread = @driver.start
        log_start(files)
        self
      rescue
        release
        raise
      end

      # Starts, calls the block, and waits for a signal.
      #
      # @yieldparam server [Server] it listens now
      # @return [Integer] the exit code: 0, or 1 when the storage has failed
      def run
        until_signalled do |signals|
          start
          yield self if block_given?
          signal_end(signals)
        end
      end

      # Stops gracefully. A second call has no effect.
      #
      # @return [Boolean] false: it has failed before, which is in the log
      def stop
        return true unless @thread
        @driver.stop(seconds: @config.broker_drain)
        failure = outcome
        log_failure(failure) if failure
        release
        failure.nil?
      end

      # Reads the key files again, and fetches the key sets of URLs again. Sessions that exist keep their permissions.
      #
      # @return [void]
      def reload = @authenticator&.reload

      # Waits until it has ended.
      #
      # @return [self]
      def wait
        @thread&.join
        self
      end

      # @return [Boolean] it has ended without {#stop}
      def ended? = !@thread.nil? && !@thread.alive?

      # Logs why it has ended without {#stop}.
      #
      # @api private
      # @return [void]
      def log_failure(failure = outcome)
        @logger.error(failure ? "the broker has failed and accepts nothing more: #{failure.message}" : "the broker has ended unexpectedly")
        @logger.error("#{failure.class} at #{failure.backtrace&.first}") if failure && !failure.is_a?(Hikyaku::Error)
      end

      # @return [Metrics]
      def metrics = @metrics ||= Metrics.new(@driver)

      # @return [Symbol] the level of messages whose senders name none
      def level = @config.broker_level&.to_sym || (@config.storage ? :written : :memory)

      # @return [String]
      def inspect = "#<#{self.class.name} #{@addresses.join(" ")}#{" stopped" unless @thread}>"

      private

      def driver(options)
        if @config.engine == "c"
          require_relative "server/native_driver"
          NativeDriver.new(open_engine(NativeEngine, options), drain: @config.broker_drain, reactor: @reactor, connections: @connections, **driver_options)
        else
          require_relative "ruby_engine"
          require_relative "server/reactor"
          use_native_checksum if @config.storage
          Reactor.new(open_engine(RubyEngine, options), **driver_options)
        end
      end

      def driver_options = {logger: @logger, auth_pool: @auth_pool, write_timeout: @config.broker_write_timeout}

      # The checksum of the journal is half of what a message on the disk costs the engine in Ruby.
      def use_native_checksum
        require "hikyaku/native"
        Log::CRC32C.use_native
      rescue LoadError => error
        @logger.warn("the broker computes the checksums of its journal in Ruby, which is slow, because the extension in C is not available (#{error.message}); " \
          "where there is a C compiler, install the gem again")
      end

      def open_engine(kind, options)
        opening { kind.new(**options.to_h, open: @auth_pool.nil?, report: @logger.method(:public_send)) }.tap do |engine|
          stats = engine.stats
          log_damage(options.storage, stats[:journal])
          log_losses(options.storage, stats[:messages_lost])
          log_memory(stats)
        end
      end

      def log_damage(folder, journal)
        return unless journal&.fetch(:torn_places)&.positive?
        @logger.error("the journal in #{folder} has wrong checksums in #{journal[:torn_places]} places of its newest segment, as after a loss of power or damage: " \
          "#{journal[:torn_missing]} records are missing there, which may be messages that were acknowledged as written, or their outcomes; " \
          "intact records behind them are kept. hikyaku log check #{folder} names offsets and positions")
      end

      def log_losses(folder, count)
        return unless count.positive?
        @logger.error("#{count} messages in the journal in #{folder} are not delivered, because the records of their queues or senders are missing. " \
          "hikyaku log dump #{folder} shows the messages")
      end

      # Acknowledged messages are kept and delivered beyond the limit.
      def log_memory(stats)
        return if stats[:index_bytes] < @config.broker_max_memory
        @logger.warn("#{stats[:messages]} messages wait, which take #{stats[:index_bytes]} bytes of memory beside their content, and broker_max_memory is " \
          "#{@config.broker_max_memory}: they are delivered, and no others are accepted until fewer wait; give #{@config.flag(:broker_max_memory)} a larger value")
      end

      def storage
        return unless @config.storage
        File.join(@config.storage, "broker").tap { |folder| opening { FileUtils.mkdir_p(folder, mode: 0o700) } }
      end

      def opening
        yield
      rescue SystemCallError => error
        raise CannotStore, "cannot keep messages in #{File.join(@config.storage.to_s, "broker")}: #{Config.reason(error)}"
      end

      def listen
        socket = @config.broker_socket || DEFAULT_SOCKET
        open_to(Config::Address.new(path: socket), @config.flag(:broker_socket)) unless socket == NO_SOCKET
        @config.broker_addresses.each { |address| open_to(address, @config.flag(:broker_listen)) }
        return if @addresses.any?
        raise ConfigError, "no client can reach this broker: give #{@config.flag(:broker_socket)} PATH or #{@config.flag(:broker_listen)} ADDRESS"
      end

      def open_to(address, flag)
        listener = Hikyaku::Server::Listener.new(address, mode: SOCKET_MODE, flag: flag)
        @driver.listen(listener)
        @addresses << listener.address
      end

      def serve_metrics
        return unless @config.broker_metrics
        require_relative "server/metrics_server"
        server = MetricsServer.new(Config::Address.parse(@config.broker_metrics), metrics: metrics, ready: -> { @thread&.alive? },
          logger: @logger, flag: @config.flag(:broker_metrics))
        @metrics_address = server.address
        server
      end

      def log_start(files)
        @config.doubts.each { |doubt| @logger.warn(doubt) } unless @config.broker
        if @config.given?(:broker_max_connections) && @config.broker_max_connections > @connections
          @logger.warn("broker_max_connections is #{@config.broker_max_connections}, but only #{files} files may be open, which leaves room for " \
            "#{@connections} clients, and no more are accepted; raise the limit of the process (ulimit -n)")
        end
        storage = @config.storage ? "messages are kept in #{File.join(@config.storage, "broker")}, at level #{level} unless the sender names another" :
          "there is no storage, so level memory is the only one: messages are lost when the process ends"
        @logger.info("the broker listens on #{@addresses.join(" and ")}, for #{@connections} clients; #{storage}")
      end

      def release
        @metrics_server&.close
        @auth_pool&.close
        @driver&.abandon unless @thread
        @metrics_server = @thread = nil
      end

      # The error that has ended the driver; nil: it was stopped.
      def outcome
        @thread.value
      rescue Exception => error # standard:disable Lint/RescueException
        error
      end

      # The main thread waits for signals alone.
      def signal_end(signals)
        Thread.new do
          Thread.current.report_on_exception = false # log_failure reports it
          wait
        ensure
          signals.tell("END")
        end
      end

      def fail_early
        log_failure
        release
        1
      end
    end
  end
end
