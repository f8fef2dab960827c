# frozen_string_literal: true

require_relative "../presence"
require_relative "../presence/inquiry"
require_relative "../presence/tag_helper"
require_relative "../presence/window"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # `config.hikyaku.presence`: who is on a page; see Hikyaku::Presence.
    module PresenceGlue
      # Asks the hub, wherever that is.
      class Source
        def initialize(settings)
          @settings = settings
        end

        def call(stream_name)
          hub = Hikyaku.hub
          return of_this_process(hub, stream_name) if hub
          (@inquiry ||= @settings.inquiry)&.call(stream_name) or raise Presence::Unknown, "it is not known who is here: this process knows no hub"
        rescue Server::Sidecar::Absent => error
          raise Presence::Unknown, "it is not known who is here: #{error.message}"
        end

        private

        # As another process would have them.
        def of_this_process(hub, stream_name)
          raise Presence::Unknown, "it is not known who is here: the hub of this process was started without subscriptions" unless hub.subscriptions?
          _, documents = hub.subscriptions(type: "exact", pattern: Presence.topic(stream_name))
          JSON.parse(JSON.generate(documents))
        end
      end

      module_function

      def settle(settings)
        Presence.settings = settings.presence
        return unless settings.presence.on?
        raise ConfigError, "config.hikyaku.presence needs config.hikyaku.turbo = true: pages get their tokens there" unless settings.turbo.on?
        raise ConfigError, "config.hikyaku.presence needs the hub's subscriptions: config.hikyaku.subscriptions = false must go" unless settings.config.subscriptions
        Presence.source = Source.new(settings)
        ActiveSupport.on_load(:action_view) { include Hikyaku::Presence::TagHelper }
      end
    end
  end
end
