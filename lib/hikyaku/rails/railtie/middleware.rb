# frozen_string_literal: true

require_relative "../../server/puma_timeouts"
require_relative "../../web/problem"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # Takes the hub's requests before all other middleware: Rails raises when an ActionDispatch::Request is asked for a
    # method that it does not know, as QUERY; and nothing that buffers, times or logs a response at its end can be
    # around a stream that has none. What protects the application protects the hub too: `config.hosts`, and
    # `config.force_ssl`.
    class Middleware
      PASSED_ON = %w[GET HEAD POST].freeze
      private_constant :PASSED_ON

      def initialize(app, _application = nil)
        @app = app
      end

      def call(env)
        @timeouts_kept ||= Server::PumaTimeouts.install(::Rails.logger)
        mount.scatter if mount.scattered?(env) && Hikyaku.web
        return @app.call(env) unless mount.serves?(env)
        return insecure(env) if settings.force_ssl? && !secure?(env)
        guarded.call(env)
      end

      private

      def mount = Railtie.mount

      def settings = mount.settings

      # Asks a request for its host, never for its method.
      def guarded
        @guarded ||= settings.hosts.empty? ? mount : ActionDispatch::HostAuthorization.new(mount, settings.hosts, **settings.host_authorization)
      end

      def secure?(env) = settings.assume_ssl? || ActionDispatch::Request.new(env).ssl?

      # ActionDispatch::SSL redirects, or lets pass what the application has excluded, to the route.
      def insecure(env)
        return @app.call(env) if PASSED_ON.include?(env["REQUEST_METHOD"])
        Web::Problem.new(403, "the hub is reached over https").response
      end
    end
  end
end
