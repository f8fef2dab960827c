# frozen_string_literal: true

require_relative "../companion/folder"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # What is published where no hub is known: `config.hikyaku.without_hub` says whether that raises or is logged. Put before Hikyaku's
    # own methods.
    #
    # @api private
    module WithoutHub
      # Said on standard error once, where the log goes to a file: whoever runs a task would not see it.
      @said = false

      class << self
        # @param error [NoHub, Companion::Absent]
        # @return [nil]
        def report(error)
          text = "Hikyaku: nothing is published: #{error.message} (config.hikyaku.without_hub is :log)"
          ::Rails.logger&.warn(text)
          warn(text) unless @said || ActiveSupport::Logger.logger_outputs_to?(::Rails.logger, $stderr, $stdout)
          @said = true
          nil
        end
      end

      # See {Hikyaku.publish}.
      #
      # @return [String, nil] the event id; nil where there is no hub, and that is logged
      # @raise [NoHub, Companion::Absent] there is no hub, and that is not logged
      def publish(topics, data = "", **options)
        super
      rescue NoHub, Companion::Absent => error
        raise if options[:outbox] == OutboxGlue::CARRIED || Railtie.mount.without_hub == :raise
        WithoutHub.report(error)
      end

      # See {Hikyaku.disconnect}.
      #
      # @return [Integer] how many streams are closed: none where there is no hub, and that is logged
      # @raise [NoHub, Companion::Absent] there is no hub, and that is not logged
      def disconnect(subject:, revoke: false)
        super
      rescue NoHub, Companion::Absent => error
        raise if Railtie.mount.without_hub == :raise
        WithoutHub.report(error)
        0
      end
    end
  end
end
