# frozen_string_literal: true

require "ipaddr"
require_relative "hub"
require_relative "reactor"
require_relative "web/authorization"
require_relative "web/challenge"
require_relative "web/disconnect"
require_relative "web/figures"
require_relative "web/gap_policy"
require_relative "web/gate"
require_relative "web/metadata"
require_relative "web/origins"
require_relative "web/problem"
require_relative "web/publish"
require_relative "web/request"
require_relative "web/subscribe"
require_relative "web/subscriptions"

module Hikyaku
  # The hub as a Rack application: publishing, subscribing, the subscription API, the metadata, and in developer mode
  # the page. Policy lives here; the bytes go through the Reactor.
  #
  #     run Hikyaku::Web.new(Hikyaku::Config.new(publisher_key: ENV["KEY"], subscriber_key: ENV["KEY"]))
  class Web
    METHODS = "GET, HEAD, QUERY, POST, OPTIONS"
    private_constant :METHODS

    # @return [Hub]
    attr_reader :hub
    # @return [Config]
    attr_reader :config
    # @return [Authorization]
    attr_reader :authorization
    # @return [Reactor]
    attr_reader :reactor

    # @param config [Config]
    # @param hub [Hub] made from the configuration unless given
    # @param logger [Logger, nil]
    def initialize(config, hub: Web.hub(config), logger: nil)
      @config = config
      @hub = hub
      @logger = logger
      @reactor = Reactor.new(hub, write_timeout: config.write_timeout, logger: logger)
      @authorization = authorize(config)
      @origins = Origins.new(cors_origins: config.cors_origins, publish_origins: config.publish_origins, hub_url: config.hub_url)
      @metadata = Metadata.new(config)
      @trusted_proxies = config.trusted_proxies.map { |range| IPAddr.new(range) }
      gate = Gate.new(hub, @authorization, @origins, config, logger: logger)
      @publish = Publish.new(hub, gate, config)
      @subscribe = Subscribe.new(hub, @reactor, gate, config)
      @subscriptions = Subscriptions.new(hub, gate, config) if hub.subscriptions?
      @disconnect = Disconnect.new(hub, gate) { |**options| disconnect(**options) }
      develop if config.dev
    end

    # Makes the hub that a configuration describes.
    #
    # @param config [Config]
    # @return [Hub]
    def self.hub(config)
      policies = config.slow_readers.map { |policy, pattern| [policy.to_sym, pattern] }
      engine = Hub::RubyEngine.new(history: config.history, heartbeat: config.heartbeat, max_lifetime: config.max_lifetime,
        gap_policy: policies.empty? ? nil : GapPolicy.new(policies, config.hub_url))
      Hub.new(hub_url: config.hub_url, engine: engine, subscriptions: config.subscriptions,
        max_connections: config.max_connections, max_connections_per_address: config.max_connections_per_address)
    end

    # @param env [Hash] a Rack environment
    # @return [Array(Integer, Hash, #call)] a Rack response
    def call(env)
      request = Request.new(env, trusted_proxies: @trusted_proxies)
      status, headers, body = respond(request)
      cors = @origins.headers(env)
      headers = headers.merge(cors) unless cors.empty?
      [status, headers, body]
    rescue Problem => problem
      refuse(problem, env)
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
    def disconnect(subject:, revoke: false)
      @subscribe.grants.forget(subject)
      @hub.disconnect(subject: subject, revoke: revoke)
    end

    # Closes all streams with a time to come back.
    #
    # @return [void]
    def shutdown = @hub.shutdown

    # @return [String] without the configuration
    def inspect = "#<#{self.class.name} #{@hub.hub_url}>"

    private

    def authorize(config)
      Authorization.new(
        issuers: config.issuer_list, resource_identifier: config.resource_identifier, hub_url: config.hub_url, legacy: config.legacy,
        limits: {max_token_bytes: config.max_token_bytes, max_token_details: config.max_token_details,
                 max_token_topics: config.max_token_topics, max_pattern_bytes: config.max_pattern_bytes},
        logger: @logger
      )
    end

    def develop
      require_relative "web/ui"
      @ui = Ui.new(config: @config, authorization: @authorization)
      @figures = Figures.new(@hub)
      @reactor.every(1) { @figures.tell }
    end

    def respond(request)
      path = request.path
      hub_path = @hub.hub_path
      if path == hub_path then hub_request(request)
      elsif path == @metadata.path then read_only(request) { @metadata.response }
      elsif path.start_with?("#{hub_path}/") then below_hub(request, path.delete_prefix(hub_path))
      elsif @ui && path == "/" then [302, {"location" => "#{hub_path}/ui/"}, []]
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
      elsif path.start_with?("/subscribers/")
        return @origins.preflight(request.env) if request.method == "OPTIONS"
        raise Problem.new(405, "only DELETE is understood here", headers: {"allow" => "DELETE, OPTIONS"}) unless request.method == "DELETE"
        @disconnect.call(request)
      elsif @ui && (path == "/ui" || path.start_with?("/ui/"))
        @ui.call(path.delete_prefix("/ui"), request.env)
      else
        raise Problem.new(404, "there is nothing at this address")
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
      status, headers, body = problem.response(@origins.headers(env).merge(challenge(problem)))
      [status, headers, (env["REQUEST_METHOD"] == "HEAD") ? [] : body]
    end

    def challenge(problem)
      return {} unless problem.challenge?
      {"www-authenticate" => Challenge.header(problem.code, resource_metadata: @metadata.url)}
    end
  end
end
