# frozen_string_literal: true

require_relative "../turbo"
require_relative "../turbo/broadcasting"
require_relative "../turbo/door"
require_relative "../turbo/page_cursor"
require_relative "../turbo/stand_in"
require_relative "../turbo/stream_name"
require_relative "../turbo/streams_helper"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # Puts Turbo Streams on this hub, when the application's own initializers have said so, and before its code is loaded.
    module TurboStreams
      module_function

      def install(settings)
        Turbo.settings = settings.turbo
        return unless settings.turbo.on?
        unless defined?(::Turbo::Engine)
          raise ConfigError, "config.hikyaku.turbo is set, and turbo-rails is not loaded: add `gem \"turbo-rails\"` to the Gemfile"
        end
        extend_turbo
        ActiveSupport.on_load(:action_controller_base) { include Hikyaku::Turbo::PageCursor }
        provide_assertions if ::Rails.env.test?
      end

      def extend_turbo
        # Not loaded again when code changes: turbo-rails has it so.
        ::Turbo::Streams::Broadcasts.prepend(Turbo::Broadcasting)
        ::Turbo::Streams::StreamName.prepend(Turbo::StreamName)
        ::Turbo::StreamsHelper.prepend(Turbo::StreamsHelper)
        ::Turbo.const_set(:StreamsChannel, Turbo::StandIn.make) unless defined?(::ActionCable)
      end

      # Action Cable's own would look into Action Cable, where nothing is.
      def provide_assertions
        require "turbo/broadcastable/test_helper"
        require_relative "../turbo/test_helper"
        ::Turbo::Broadcastable::TestHelper.prepend(Turbo::TestHelper)
        ActiveSupport.on_load(:active_support_test_case) { include Hikyaku::Turbo::TestHelper }
        ActiveSupport.on_load(:action_dispatch_system_test_case) do
          require_relative "../turbo/system_test_helper"
          Hikyaku::Turbo::SystemTestHelper.install
        end
      end
      private_class_method :extend_turbo, :provide_assertions
    end
  end
end
