# frozen_string_literal: true

require "fileutils"
require_relative "../broker"
require_relative "../config"
require_relative "../server/open_files"
require_relative "../server/listener"
require_relative "../server/signal_handling"
require_relative "address"
require_relative "server/authenticator"
require_relative "server/doorkeeper"
require_relative "server/metrics"
require_relative "server/options"

module Hikyaku
  module Broker
    # Messages cannot be kept where they should; the message says why.
    class CannotStore < StandardError
      include Error
    end

    # A broker in a process: its engine, what it listens on, who may come in, and its end.
    #
    #     server = Hikyaku::Broker::Server.new(Hikyaku::Config.load(serving: :broker), logger: logger)
    #     server.run          # until TERM or INT; returns the exit code
    #
    # A stop is graceful: no new connections and messages, receivers finish what they have within `broker_drain` seconds, and
    # the journal is closed. A second signal ends the process at once: as any end without notice, it costs what was not acknowledged.
    #
    # docs/protocol.md, sections 10 and 11.
    class Server
      include Hikyaku::Server::SignalHandling

      # For the user of the process alone: whoever can open the socket may do everything.
      SOCKET_MODE = 0o600
      NO_SOCKET = "none"
      private_constant :SOCKET_MODE, :NO_SOCKET

      # @return [Config]
      attr_reader :config
      # @return [Array<Config::Address>] where it listens, once started
      attr_reader :addresses
      # @return [Config::Address, nil] where its figures are shown over HTTP
      attr_reader :metrics_address

      # @param config [Config]
      # @param logger [Logger]
      # @param reactor [Hikyaku::Server::NativeReactor, nil] the hub's, which is to carry the broker, too; nil: it gets one of its own
      # @param connections [Integer, nil] clients for which a hub in the same process leaves room; nil: there is none
      def initialize(config, logger:, reactor: nil, connections: nil)
        @config = config
        @logger = logger
        @reactor = reactor
        @connections = connections
        @addresses = []
      end

      # Opens the storage and listens, in threads of its own.
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
        @doorkeeper = Doorkeeper.new(@authenticator, logger: @logger) if @authenticator
        # Who can connect is served.
        @driver = drive(Options.of(@config, storage: storage, connections: @connections))
        listen
        @thread = @driver.start
        @monitor = watched
        tell(files)
        self
      rescue
        give_up
        raise
      end

      # Starts, tells the block, and waits for a signal.
      #
      # @yieldparam server [Server] when it listens
      # @return [Integer] the exit code: 0, or 1 when the storage has failed
      def run
        until_signalled do |signals|
          start
          yield self if block_given?
          watch(signals)
        end
      end

      # Stops gracefully. Harmless when repeated.
      #
      # @return [Boolean] false: it did not end in order, which the log says
      def stop
        return true unless @thread
        @driver.stop(seconds: @config.broker_drain)
        failure = outcome
        complain(failure) if failure
        give_up
        failure.nil?
      end

      # Reads the files of keys again, and fetches the key sets of URLs again. Sessions that were let in last as they were told.
      #
      # @return [void]
      def reload = @authenticator&.reload

      # Waits until it has ended, by itself or not.
      #
      # @return [self]
      def wait
        @thread&.join
        self
      end

      # @return [Boolean] it has ended, though nobody has stopped it
      def ended? = !@thread.nil? && !@thread.alive?

      # Says why it has ended by itself.
      #
      # @api private
      # @return [void]
      def complain(failure = outcome)
        @logger.error(failure ? "the broker has failed and takes nothing any more: #{failure.message}" : "the broker has ended by itself")
        @logger.error("#{failure.class} at #{failure.backtrace&.first}") if failure && !failure.is_a?(Hikyaku::Error)
      end

      # @return [Metrics]
      def metrics = @metrics ||= Metrics.new(@driver)

      # @return [Symbol] the level of messages whose senders leave it open
      def level = @config.broker_level&.to_sym || (@config.storage ? :written : :memory)

      # @return [String] without the settings
      def inspect = "#<#{self.class.name} #{@addresses.join(" ")}#{" stopped" unless @thread}>"

      private

      def drive(options)
        (@config.engine == "c") ? native(options) : ruby(options)
      end

      # The engine is in Ruby; the checksum of its journal need not be, where the extension was compiled: that is half of what
      # a message on the disk costs.
      def ruby(options)
        require_relative "ruby_engine"
        require_relative "server/reactor"
        quicken if @config.storage
        Reactor.new(open_engine(RubyEngine, options), logger: @logger, doorkeeper: @doorkeeper, write_timeout: @config.broker_write_timeout)
      end

      def quicken
        require "hikyaku/native"
        Log::CRC32C.use_native
      rescue LoadError
        nil
      end

      def native(options)
        require_relative "server/native"
        Native.new(open_engine(NativeEngine, options), logger: @logger, doorkeeper: @doorkeeper, write_timeout: @config.broker_write_timeout,
          drain: @config.broker_drain, reactor: @reactor, connections: @connections)
      end

      def open_engine(kind, options)
        opening { kind.new(**options.to_h, open: @doorkeeper.nil?, report: @logger.method(:public_send)) }.tap do |engine|
          stats = engine.stats
          tell_of_damage(options.storage, stats[:journal])
          tell_of_losses(options.storage, stats[:messages_lost])
          look_at_memory(stats)
        end
      end

      def tell_of_damage(folder, journal)
        return unless journal&.fetch(:torn_places)&.positive?
        @logger.error("the journal in #{folder} did not verify in #{journal[:torn_places]} places of its newest segment, as after a loss of power or damage: " \
          "#{journal[:torn_missing]} records are missing there, and with them messages that were acknowledged as written, or what became of messages; " \
          "what is whole behind them is kept. hikyaku log check #{folder} names offsets and positions")
      end

      def tell_of_losses(folder, count)
        return unless count.positive?
        @logger.error("#{count} messages in the journal in #{folder} are not delivered: the records that say into which queue they were sent, or who has sent them, " \
          "are missing. hikyaku log dump #{folder} shows the messages")
      end

      # What was acknowledged is kept and delivered, however little memory there may be.
      def look_at_memory(stats)
        return if stats[:index_bytes] < @config.broker_max_memory
        @logger.warn("#{stats[:messages]} messages wait, which take #{stats[:index_bytes]} bytes of memory beside their content, and broker_max_memory is " \
          "#{@config.broker_max_memory}: they are delivered, and no others are taken until fewer wait; give #{@config.flag(:broker_max_memory)} a larger value")
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
        raise ConfigError, "nobody could reach this broker: give #{@config.flag(:broker_socket)} PATH or #{@config.flag(:broker_listen)} ADDRESS"
      end

      def open_to(address, flag)
        listener = Hikyaku::Server::Listener.new(address, mode: SOCKET_MODE, flag: flag)
        @driver.listen(listener)
        @addresses << listener.address
      end

      def watched
        return unless @config.broker_metrics
        require_relative "server/monitor"
        monitor = Monitor.new(Config::Address.parse(@config.broker_metrics), metrics: metrics, ready: -> { @thread&.alive? },
          logger: @logger, flag: @config.flag(:broker_metrics))
        @metrics_address = monitor.address
        monitor
      end

      def tell(files)
        @config.doubts.each { |doubt| @logger.warn(doubt) } unless @config.broker
        if @config.given?(:broker_max_connections) && @config.broker_max_connections > @connections
          @logger.warn("broker_max_connections is #{@config.broker_max_connections}, but only #{files} files may be open, which leaves room for " \
            "#{@connections} clients: so many are taken; raise the limit of the process (ulimit -n)")
        end
        kept = @config.storage ? "messages are kept in #{File.join(@config.storage, "broker")}, at level #{level} unless a sender says otherwise" :
          "there is no storage, so level memory is all there is: messages are gone when the process ends"
        @logger.info("the broker listens on #{@addresses.join(" and ")}, for #{@connections} clients; #{kept}")
      end

      def give_up
        @monitor&.close
        @doorkeeper&.close
        @driver&.abandon unless @thread
        @monitor = @thread = nil
      end

      # What has ended the driver, also where its thread could not say it; nil: it was told to stop.
      def outcome
        @thread.value
      rescue Exception => error # standard:disable Lint/RescueException
        error
      end

      # However it ends, that is told: nobody else would notice.
      def watch(signals)
        Thread.new do
          Thread.current.report_on_exception = false # the log says it
          wait
        ensure
          signals.tell("END")
        end
      end

      def fail_early
        complain
        give_up
        1
      end
    end
  end
end
