# frozen_string_literal: true

require "ipaddr"
require_relative "hub"
require_relative "server/open_files"
require_relative "server/puma_timeouts"
require_relative "web/authorization"
require_relative "web/request"
require_relative "web/problem"
require_relative "web/change"
require_relative "web/engine_choice"
require_relative "web/authenticator"
require_relative "web/metadata"
require_relative "web/origins"
require_relative "web/publish"
require_relative "web/subscribe"
require_relative "web/subscriptions"
require_relative "web/subscription_reader"

module Hikyaku
  # The hub as a Rack application: publishing, subscribing, the subscription API, the metadata, and in developer mode
  # the page. Policy lives here; the bytes go through the Server::Reactor.
  #
  #     run Hikyaku::Web.new(Hikyaku::Config.new(publisher_key: ENV["KEY"], subscriber_key: ENV["KEY"]))
  class Web
    METHODS = "GET, HEAD, QUERY, POST, OPTIONS"
    FORKED = "this process was forked from one that had made the hub: here it is a hub of its own, whose publishes reach nobody " \
      "in another process. With several workers let one process be the hub for all: `plugin :hikyaku` in Puma, or `hikyaku serve`"
    UNCOMPRESSED = "streams are not compressed, whatever Accept-Encoding says: this hub's engine writes no gzip"
    private_constant :METHODS, :FORKED, :UNCOMPRESSED

    # @return [Hub]
    attr_reader :hub
    # @return [Config]
    attr_reader :config
    # @return [Authorization]
    attr_reader :authorization
    # @return [Server::Reactor, Server::NativeReactor]
    attr_reader :reactor
    # @return [Refusals] what was refused, by reason
    attr_reader :refusals

    # @param config [Config]
    # @param hub [Hub] made from the configuration unless given
    # @param logger [Logger, nil]
    # @raise [NativeUnavailable] the engine in C is not there, and this is neither developer mode nor was the one in Ruby asked for
    def initialize(config, hub: nil, logger: nil)
      config = EngineChoice.settle(config, logger: logger) unless hub
      @config = config
      @logger = logger
      @hub = hub ||= Web.hub(config, logger: logger)
      logger&.info(UNCOMPRESSED) unless hub.offers?(:events, :gzip)
      # Here, for who connects before anybody asks anything; in `call` for a server that is loaded after its application.
      Server::PumaTimeouts.install(logger)
      @reactor = reactor_of(hub)
      @authorization = authorize(config)
      watch_keys if @authorization.refreshable?
      @origins = Origins.new(cors_origins: config.cors_origins, publish_origins: config.publish_origins, hub_url: config.hub_url)
      @metadata = Metadata.new(config)
      @refusals = Refusals.new
      @reading = {trusted_proxies: config.trusted_proxies.map { |range| IPAddr.new(range) }, max_fields: config.max_fields}.freeze
      @max_body_bytes = BodyLimit.hard(config.max_request_bytes)
      authenticator = Authenticator.new(hub, @authorization, @origins, config, logger: logger)
      @publish = Publish.new(hub, authenticator, config)
      @reader = SubscriptionReader.new(hub, authenticator, config)
      @subscribe = Subscribe.new(hub, @reactor, authenticator, @reader, config)
      @change = Change.new(hub, authenticator, @reader, config)
      @subscriptions = Subscriptions.new(hub, authenticator, config) if hub.subscriptions?
      @disconnect = Disconnect.new(hub, authenticator) { |**options| disconnect(**options) }
      BodyLimit.watch([hub.hub_path, @metadata.path], config.max_request_bytes)
      hub.on_fork { logger&.warn(FORKED) }
      develop if config.dev
    end

    # Makes the hub that a configuration describes.
    #
    # @param config [Config]
    # @param logger [Logger, nil] is told what is found of a history that is kept
    # @return [Hub]
    # @raise [NativeUnavailable] the engine in C is asked for and not there
    def self.hub(config, logger: nil)
      policies = config.slow_readers.map { |policy, pattern| [policy.to_sym, pattern] }
      Hub.new(hub_url: config.hub_url, engine: engine(config.engine), subscriptions: config.subscriptions,
        limits: Hub::UpdateLimits.of(config), history: config.history, heartbeat: config.heartbeat, max_lifetime: config.max_lifetime,
        gap_policy: policies.empty? ? nil : GapPolicy.new(policies, config.hub_url),
        max_connections: config.max_connections || Server::OpenFiles.for_subscribers(Process.getrlimit(:NOFILE).first),
        max_connections_per_address: config.max_connections_per_address,
        max_pattern_cost_total: config.max_pattern_cost_total, max_pattern_cost_per_address: config.max_pattern_cost_per_address,
        max_pattern_cost_per_beginning: cost_per_beginning(config),
        storage: storage(config, logger))
    end

    # The engine in Ruby takes 100 times as long for a step.
    #
    # @param config [Config]
    # @return [Integer]
    # @api private
    def self.cost_per_beginning(config)
      limit = config.max_pattern_cost_per_beginning
      (config.engine == "ruby" && !config.given?(:max_pattern_cost_per_beginning)) ? limit / 32 : limit
    end

    def self.storage(config, logger)
      return unless config.storage
      {folder: File.join(config.storage, "hub"), level: config.storage_level.to_sym, age: config.storage_age, report: logger&.method(:public_send)}.compact
    end
    private_class_method :storage

    # Loads what is asked for, and nothing else: an engine that is not there must not be in the way of one that is.
    def self.engine(name)
      return Hub::RubyEngine if name == "ruby"
      require_relative "hub/native_engine"
      Hub::NativeEngine
    end
    private_class_method :engine

    # @param env [Hash] a Rack environment
    # @return [Array(Integer, Hash, #call)] a Rack response
    def call(env)
      @timeouts_kept ||= Server::PumaTimeouts.install(@logger)
      request = Request.new(env, **@reading)
      request.check!(max_bytes: @max_body_bytes)
      status, headers, body = respond(request)
      headers = Problem::NOSNIFF.merge(headers) unless headers.key?("x-content-type-options")
      # What differs from one answer to the next stays at the end.
      cors = @origins.headers(env)
      unless cors.empty?
        vary = [headers["vary"], cors["vary"]].compact.join(", ")
        headers = cors.merge(headers, cors)
        headers["vary"] = vary unless vary.empty?
      end
      [status, headers, body]
    rescue Problem => problem
      refuse(problem, env)
    rescue StorageFailed => error
      @logger&.error(error.message)
      refuse(Problem.new(503, "the hub cannot keep updates now, so it takes none; its log says more", headers: {"retry-after" => "5"}), env)
    rescue => error
      @logger&.error("#{error.class}: #{error.message} (#{error.backtrace&.first})")
      refuse(Problem.new(500, "the hub made a mistake; its log says more"), env)
    end

    # Whether a path belongs to the hub, for applications that mount it among others.
    #
    # @param path [String]
    # @return [Boolean]
    def serves?(path)
      path == @hub.hub_path || path.start_with?("#{@hub.hub_path}/") || path == @metadata.path
    end

    # Closes all streams of a subject and forgets the decisions about it.
    #
    # @param subject [String] the `sub` of its tokens
    # @param revoke [Boolean] also refuse the tokens that it got before now
    # @return [Integer] how many streams are closed
    # @raise [ArgumentError] the subject is empty, or no String, and no token has it
    def disconnect(subject:, revoke: false)
      raise ArgumentError, "name the subject whose streams are to be closed" if subject.to_s.empty?
      raise ArgumentError, "expected a String as the subject, not #{subject.class}: give it as the token says it" unless subject.is_a?(String)
      @reader.grants.forget(subject)
      @hub.disconnect(subject: subject, revoke: revoke)
    end

    # The page that developers see shows the broker of the same process, too.
    #
    # @param broker [#call] gives its figures: see {Broker::Server::Metrics#overview}
    # @return [void]
    # @api private
    attr_writer :broker

    # Reads the files of keys again, and fetches the key sets of URLs again.
    #
    # @return [void]
    def reload = @authorization.reload

    # Closes all streams with a time to come back, and what keeps the history.
    #
    # @return [void]
    def shutdown
      @hub.shutdown
      @hub.close
    end

    # @return [String] without the configuration
    def inspect = "#<#{self.class.name} #{@hub.hub_url}>"

    private

    # Its engine says who can carry a hub's bytes.
    def reactor_of(hub)
      options = {write_timeout: @config.write_timeout, logger: @logger}
      if hub.drive { |engine| engine.is_a?(Hub::RubyEngine) }
        require_relative "server/reactor"
        Server::Reactor.new(hub, **options)
      else
        require_relative "server/native_reactor"
        # One loop ends for hub and broker together.
        options[:drain_timeout] = @config.broker_drain if @config.broker
        Server::NativeReactor.new(hub, io_uring: @config.io_uring, **options)
      end
    end

    def authorize(config)
      Authorization.new(
        issuers: config.issuer_list, resource_identifier: config.resource_identifier, hub_url: config.hub_url, legacy: config.legacy,
        limits: {max_token_bytes: config.max_token_bytes, max_token_details: config.max_token_details,
                 max_token_topics: config.max_token_topics, max_pattern_bytes: config.max_pattern_bytes},
        logger: @logger, weak_secrets: config.dev
      )
    end

    # A driver that answers by itself asks for no verdicts; neither it nor a stream must outlive the keys.
    def watch_keys
      @authorization.on_change { expel }
      @reactor.every(1) { @authorization.refresh }
    end

    def expel
      count = @hub.expel
      @logger&.info("keys have changed: #{count} streams are closed whose tokens were signed with a key that is gone") if count.positive?
    end

    def develop
      require_relative "web/developer_page"
      @developer_page = DeveloperPage.new(config: @config, authorization: @authorization)
      @live_metrics = LiveMetrics.new(@hub, broker: -> { @broker&.call })
      @reactor.every(1) { @live_metrics.push }
    end

    def respond(request)
      path = request.path
      hub_path = @hub.hub_path
      if path == hub_path then hub_request(request)
      elsif path == @metadata.path then read_only(request) { @metadata.response }
      elsif path.start_with?("#{hub_path}/") then below_hub(request, path.delete_prefix(hub_path))
      elsif @developer_page && path == "/" then [302, {"location" => "#{hub_path}/ui/"}, []]
      else
        raise Problem.new(404, "there is nothing at this address")
      end
    end

    def hub_request(request)
      case request.method
      when "GET", "HEAD", "QUERY" then @subscribe.call(request)
      when "POST" then @publish.call(request)
      when "OPTIONS" then @origins.preflight(request.env)
      else raise Problem.new(405, "the hub understands #{METHODS}", headers: {"allow" => METHODS})
      end
    end

    def below_hub(request, path)
      if @subscriptions && (path == "/subscriptions" || path.start_with?("/subscriptions/"))
        read_only(request) { @subscriptions.call(request) }
      elsif path.start_with?(Change::ROOT)
        only(request, "POST") { @change.call(request) }
      elsif path.start_with?("/subscribers/")
        only(request, "DELETE") { @disconnect.call(request) }
      elsif @developer_page && (path == "/ui" || path.start_with?("/ui/"))
        @developer_page.call(path.delete_prefix("/ui"), request.env)
      else
        raise Problem.new(404, "there is nothing at this address")
      end
    end

    def only(request, method)
      case request.method
      when method then yield
      when "OPTIONS" then @origins.preflight(request.env)
      else raise Problem.new(405, "only #{method} is understood here", headers: {"allow" => "#{method}, OPTIONS"})
      end
    end

    def read_only(request)
      case request.method
      when "GET" then yield
      when "HEAD"
        status, headers, = yield
        [status, headers, []]
      when "OPTIONS" then @origins.preflight(request.env)
      else raise Problem.new(405, "only GET and HEAD are understood here", headers: {"allow" => "GET, HEAD, OPTIONS"})
      end
    end

    def refuse(problem, env)
      @refusals.add(problem)
      status, headers, body = problem.response(@origins.headers(env).merge(challenge(problem)))
      [status, headers, (env["REQUEST_METHOD"] == "HEAD") ? [] : body]
    end

    def challenge(problem)
      return {} unless problem.challenge?
      {"www-authenticate" => Challenge.header(problem.code, resource_metadata: @metadata.url)}
    end

    # Counts what was refused, by reason. Thread-safe.
    class Refusals
      REASONS = {
        400 => "malformed", 401 => "no_token", 403 => "insufficient_scope", 404 => "not_found", 405 => "method_not_allowed",
        412 => "memory_lost", 413 => "too_large", 422 => "key_reused", 429 => "too_many_connections", 500 => "error",
        503 => "stopping"
      }.freeze
      private_constant :REASONS

      def initialize
        @counts = Hash.new(0)
        @mutex = Mutex.new
      end

      def add(problem)
        reason = problem.reason || problem.code || REASONS.fetch(problem.status, "other")
        @mutex.synchronize { @counts[reason] += 1 }
      end

      def to_h = @mutex.synchronize { @counts.dup }
    end

    # What happens to a reader that the history has passed, by topic: told and moved on (`gap`), or closed (`close`).
    class GapPolicy
      def initialize(policies, hub_url)
        @hub_url = hub_url
        @policies = policies.map { |policy, pattern| [policy, Hub::Matcher.build(type: "urlpattern", pattern: pattern, base: hub_url)] }
        @topics = Hub::Topics.new(hub_url: hub_url, max_bytes: 65_536)
      end

      def call(matcher)
        topic = @topics[matcher.pattern]
        found = @policies.find { |_, pattern| pattern.match?(topic) || pattern.pattern == matcher.pattern }
        found ? found.first : :gap
      end
    end
  end
end
