# frozen_string_literal: true

require_relative "../error"

module Hikyaku
  module Turbo
    # Put before Turbo::StreamsHelper, for views.
    #
    # @api private
    module StreamsHelper
      # The element that follows a stream, from the state that the page shows.
      #
      # @param streamables [Array] what the stream is named after
      # @param attributes [Hash] of the element; `channel:`, which belongs to Action Cable, is left out, and the log says so
      # @return [ActiveSupport::SafeBuffer]
      # @raise [ArgumentError] all streamables are blank, or the name is too long
      # @raise [ConfigError] a class was given that would decide who may follow, and nothing decides that in its place
      def turbo_stream_from(*streamables, **attributes)
        raise ArgumentError, "streamables can't be blank" unless streamables.any?(&:present?)
        StreamsHelper.not_asked(attributes.delete(:channel))
        tag.hikyaku_stream_source(**attributes, "signed-stream-name": ::Turbo::StreamsChannel.signed_stream_name(streamables),
          cursor: StreamsHelper.cursor(try(:controller)), src: Railtie.mount.settings.streams_path)
      end

      # @param page [ActionController::Base, nil] none, or one that knows nothing, for views outside of a request
      # @return [String, nil]
      def self.cursor(page) = page.respond_to?(:hikyaku_cursor, true) ? page.send(:hikyaku_cursor) : Railtie.mount.newest

      @told = {}
      @lock = Mutex.new

      # Says once of each class that it decides nothing any more. Where nothing else does, whoever it refused would be let in.
      #
      # @param channel [Object, nil]
      # @return [void]
      # @raise [ConfigError]
      def self.not_asked(channel)
        name = channel.to_s
        return if name.empty? || name == "Turbo::StreamsChannel"
        unless Turbo.authorization
          raise ConfigError, "turbo_stream_from was given channel: #{name}, which is not asked any more who may follow a stream, and nothing else is: " \
            "say that with Hikyaku::Turbo.authorize, or leave channel: out if whoever is shown a page may follow its streams"
        end
        return if @lock.synchronize { @told[name] || !(@told[name] = true) }
        ::Rails.logger&.warn("Hikyaku: turbo_stream_from was given channel: #{name}, which is not asked any more who may follow a stream: " \
          "decide that with Hikyaku::Turbo.authorize")
      end
    end
  end
end
