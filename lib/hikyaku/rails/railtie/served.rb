# frozen_string_literal: true

require_relative "../../server/sidecar/settings"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # Knows where the server of this process listens, or is about to.
    #
    # `puma` has read its configuration when it loads the application: the answer is there. `rails server` loads the application
    # first, and knows the port that it was given; a port that stands in config/puma.rb as a number it does not know.
    module Served
      # Put before Rails::Server.
      module Telling
        def start(*)
          Served.options = options
          super
        end
      end

      class << self
        attr_accessor :options

        def follow = (::Rails::Server.prepend(Telling) if defined?(::Rails::Server))

        def url
          return Server::Sidecar::ServerURL.of(bind(*options.values_at(:Host, :Port))) if options
          config = ::Puma.cli_config if defined?(::Puma.cli_config)
          Server::Sidecar::ServerURL.of(config.options[:binds]) if config
        end

        private

        # As Puma understands the two.
        def bind(host, port)
          host = host.to_s
          return "#{host}#{":#{port}" unless host.match?(/:\d+\z/)}" if host.start_with?("ssl://")
          "tcp://#{(host.count(":") > 1 && !host.start_with?("[")) ? "[#{host}]" : host}:#{port}"
        end
      end
    end
  end
end
