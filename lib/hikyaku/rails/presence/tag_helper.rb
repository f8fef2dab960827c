# frozen_string_literal: true

module Hikyaku
  module Presence
    # For views.
    module TagHelper
      # The element by which whoever has the page is here, and which says who else is:
      #
      #     <%= hikyaku_presence_tag @room, data: {controller: "people", action: "hikyaku:presence->people#show"} %>
      #
      # It dispatches the event `hikyaku:presence`, with `detail` {here, joined, left}: lists of what `hikyaku_payload` of their
      # ApplicationController says. Its script is "hikyaku-presence".
      #
      # @param streamables [Array] what the stream is named after, as for turbo_stream_from
      # @param attributes [Hash] of the element
      # @yieldreturn [String] its content
      # @return [ActiveSupport::SafeBuffer]
      # @raise [ConfigError] there is no presence
      # @raise [ArgumentError] all streamables are blank, or the name is too long
      def hikyaku_presence_tag(*streamables, **attributes, &block)
        settings = Railtie.mount.settings
        raise ConfigError, "hikyaku_presence_tag needs config.hikyaku.presence = true" unless settings.presence.on?
        signed = Turbo::SignedName.make(Presence.name_of(streamables), purpose: PURPOSE)
        tag.hikyaku_presence(grace: settings.presence.grace, **attributes, "signed-stream-name": signed, src: settings.streams_path,
          window: settings.presence_path, &block)
      end
    end
  end
end
