# frozen_string_literal: true

require "securerandom"
require_relative "../../server/sidecar/folder"
require_relative "../../server/sidecar/settings"
require_relative "../../server/listener"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # The Unix socket on which a server in development, which holds the hub itself, takes what the application's other processes
    # publish: consoles, tasks, jobs. They find it in the default folder of Server::Sidecar::Folder.
    class LocalSocket
      # Whose tokens the other processes show.
      ISSUER = "hikyaku:local"
      THREADS = 2
      private_constant :ISSUER, :THREADS

      def self.open(logger)
        path = Server::Sidecar::Folder.default or return
        folder = Server::Sidecar::Folder.take(path) { |sentence| logger&.warn("Hikyaku: #{sentence}") }
        new(folder, logger) if folder
      end

      def initialize(folder, logger)
        @folder = folder
        @logger = logger || Logger.new(nil)
        @key = SecureRandom.urlsafe_base64(32)
      end

      def admit(config) = config.with(issuers: [*config.issuers, {issuer: ISSUER, publisher_key: @key}])

      def serve(web)
        require_relative "../../server/http"
        config = web.config
        @listener = Server::Listener.new(Config::Address.parse("unix:#{@folder.socket}"), mode: 0o600)
        @http = Server::Http.new(web, logger: @logger, listener: @listener, threads: THREADS, max_request_bytes: config.max_request_bytes)
        @http.run
        @folder.tell(Server::Sidecar::HubSettings.about(config).merge(issuer: ISSUER, key: @key, pid: Process.pid))
      rescue Error, SystemCallError => error
        @logger.warn("Hikyaku: a console does not find this server: #{error.message}")
        close
      end

      # Takes it away.
      def close
        @http&.stop(true)
        @listener&.close
        @folder.remove
        @folder.release
      end

      # Lets go of it, in a process that was forked from the one that opened it.
      def abandon
        @listener&.sockets&.each(&:close)
        @folder.release
      end

      def inspect = "#<#{self.class.name} #{@folder.path}>"
    end
  end
end
