# frozen_string_literal: true

require "rack/utils"
require_relative "../../web/change"
require_relative "../../web/engine_choice"
require_relative "../../web/metadata"
require_relative "../../web/problem"
require_relative "spoken_warning"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # The hub's place in the application: a Rack application that answers with the hub of this process, or says where it
    # is. Lives as long as the process, whatever code is reloaded.
    class Mount
      SCATTERED = "the server has several processes, and a hub lives in one: let Puma run it beside them (plugin :hikyaku in " \
        "config/puma.rb), or run it elsewhere (bin/rails hikyaku:hub) and set config.hikyaku.hub to its address"
      REQUEST = "request.hikyaku"
      # RFC 3875 section 4.1.17: servers set it, and requests that a test makes by itself are without.
      SERVER = "SERVER_SOFTWARE"
      private_constant :SCATTERED, :REQUEST, :SERVER

      attr_reader :settings

      def initialize(settings)
        @settings = settings
        @lock = Mutex.new
      end

      # Called when the application is initialized, in every process.
      def settle
        settings.config
        settings.without_hub
        settings.connect if settings.remote?
        # A page without a token follows nothing: better known now.
        Web::TokenMaker.for(settings.config, role: :subscriber) if settings.turbo.on?
      end

      # Called when the application is served. With the route drawn, this process holds the hub.
      def open
        @serving = true
        return if settings.remote? || settings.beside? || !settings.routed? || ::Rails.env.test?
        Cluster.refuse(SCATTERED)
        hold
      end

      # Ends the hub of this process: Puma, which began after the application was served (`rails server`), runs one beside it.
      def give_way
        @lock.synchronize do
          end_hub
          Hikyaku.reset
        end
      end

      # Ends the hub of this process before the block forks it, and begins it again in the process that goes on.
      def move
        holds = !Hikyaku.web.nil?
        give_way if holds
        result = yield
        hold if holds
        result
      end

      def without_hub = settings.without_hub(serving: @serving)

      # The newest event, as somebody knows it who may read nothing private: who begins after it misses nothing, or is told.
      def newest(env = nil)
        hold if env && opened_by?(env)
        hub = Hikyaku.hub
        return hub.cursor(Hub::Grant.new(matchers: [hub.matcher("exact", "/")])) if hub
        (@newest ||= settings.newest)&.call
      rescue Server::Sidecar::Absent
        nil
      end

      def call(env)
        return answer(env) unless ActiveSupport::Notifications.notifier.listening?(REQUEST)
        payload = {method: env["REQUEST_METHOD"], path: Web::Change.loggable(path_of(env))}
        ActiveSupport::Notifications.instrument(REQUEST, payload) do
          answer(env).tap { |status, *| payload[:status] = status }
        end
      end

      def serves?(env)
        path = path_of(env)
        # Asked for with each request of the application.
        return false unless path.start_with?(*prefixes)
        prefixes.any? { |own| path == own || path.start_with?("#{own}/") } && settings.routed?
      end

      # The last net: a server of which it could not be known that it forks. Its hub is given up, so that publishing raises.
      def scatter
        @lock.synchronize do
          return if @scattered
          @scattered = true
          close_local
          Hikyaku.reset
        end
        ::Rails.logger&.error("Hikyaku: #{SCATTERED}")
      end

      def scattered?(env) = !!env["rack.multiprocess"] && !settings.remote? && !settings.beside?

      def metadata_path = metadata.path

      def inspect = settings.remote? ? "Hikyaku at #{settings.public_url || settings.hub}" : "Hikyaku"

      private

      # A test publishes to nobody, and needs no hub; but where a server has the page, a browser will follow what happens from there on.
      def opened_by?(env) = ::Rails.env.test? && env.key?(SERVER) && Hikyaku.web.nil? && !scattered?(env) && settings.routed?

      def relay = @relay ||= Server::Relay.new

      def metadata = @metadata ||= Web::Metadata.new(settings.config)

      def prefixes = @prefixes ||= [settings.config.path, metadata.path]

      def path_of(env)
        root = env["SCRIPT_NAME"]
        (root.nil? || root.empty?) ? env["PATH_INFO"].to_s : "#{root}#{env["PATH_INFO"]}"
      end

      def answer(env)
        return elsewhere(env) if settings.remote?
        return relay.call(env) if settings.beside?
        return problem(503, SCATTERED) if scattered?(env)
        (Hikyaku.web || hold).call(env)
      end

      def hold
        @lock.synchronize do
          Hikyaku.web || begin
            warn_of_name
            begin_hub
            owner = Process.pid
            at_exit { end_hub if Process.pid == owner }
            @web
          end
        end
      end

      def begin_hub
        @local&.abandon
        @local = LocalSocket.open(::Rails.logger)
        config = Web::EngineChoice.settle(settings.config, logger: SpokenWarning, lenient: ::Rails.env.local?)
        @web = Hikyaku.start(@local ? @local.admit(config) : config, logger: ::Rails.logger)
        @local&.serve(@web)
      end

      def end_hub
        close_local
        @web&.shutdown
        @web = nil
      end

      def close_local
        @local&.close
        @local = nil
      end

      def warn_of_name
        doubt = settings.doubt
        ::Rails.logger&.warn("Hikyaku: #{doubt}") if doubt
      end

      # RFC 9110 section 15.4.8: 307 keeps the method, and the body with it.
      def elsewhere(env)
        url = settings.public_url or
          return problem(404, "the hub is in another process, and it is not known under which URL clients find it: " \
            "set config.hikyaku.resource_identifier")
        target = target_of(env, url)
        return problem(404, "the hub is in another process: the server in front must send requests for #{settings.public_path} to it") if own?(env, target)
        query = env["QUERY_STRING"].to_s
        [307, {"location" => query.empty? ? target : "#{target}?#{query}", "cache-control" => "no-store", **Web::Problem::NOSNIFF}, []]
      end

      def target_of(env, url)
        path = path_of(env)
        return metadata.url if path == metadata.path && metadata.url
        "#{url}#{path.delete_prefix(settings.config.path).chomp("/")}"
      end

      # Whatever the scheme: a proxy in front may have taken the encryption off.
      def own?(env, target)
        target.sub(/\A[a-z]+/i, "").casecmp?("://#{env["HTTP_HOST"]}#{path_of(env)}")
      end

      def problem(status, detail) = Web::Problem.new(status, detail).response
    end
  end
end
