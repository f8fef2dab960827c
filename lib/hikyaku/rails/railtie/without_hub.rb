# frozen_string_literal: true

require_relative "../../server/sidecar/folder"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # What is published where no hub is known: `config.hikyaku.without_hub` says whether that raises or is logged. Put before Hikyaku's
    # own methods.
    module WithoutHub
      # Said on standard error once, where the log goes to a file: whoever runs a task would not see it.
      @said = false

      class << self
        def report(error)
          text = "Hikyaku: nothing is published: #{error.message} (config.hikyaku.without_hub is :log)"
          ::Rails.logger&.warn(text)
          warn(text) unless @said || ActiveSupport::Logger.logger_outputs_to?(::Rails.logger, $stderr, $stdout)
          @said = true
          nil
        end
      end

      # See {Hikyaku.publish}.
      def publish(topics, data = "", **options)
        super
      rescue NoHub, Server::Sidecar::Absent => error
        raise if options[:outbox] == OutboxGlue::CARRIED || Railtie.mount.without_hub == :raise
        WithoutHub.report(error)
      end

      # See {Hikyaku.disconnect}.
      def disconnect(subject:, revoke: false)
        super
      rescue NoHub, Server::Sidecar::Absent => error
        raise if Railtie.mount.without_hub == :raise
        WithoutHub.report(error)
        0
      end
    end
  end
end
