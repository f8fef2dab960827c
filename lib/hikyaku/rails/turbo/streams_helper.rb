# frozen_string_literal: true

require_relative "../turbo"
require_relative "cable_class"
require_relative "signed_stream"

module Hikyaku
  module Turbo
    # Put before Turbo::StreamsHelper, for views.
    module StreamsHelper
      # The element that follows a stream, from the state that the page shows.
      def turbo_stream_from(*streamables, **attributes)
        raise ArgumentError, "streamables can't be blank" unless streamables.any?(&:present?)
        class_name = CableClass.name_of(attributes.delete(:channel))
        attributes[:channel] = class_name if class_name
        params = {}
        params = SignedStream.params_of(tag.hikyaku_stream_source(**attributes)) if attributes.any? { |name, _value| name.start_with?("data") }
        stream = SignedStream.new(Turbo.name_of(streamables), class_name, params)
        tag.hikyaku_stream_source(**attributes, "signed-stream-name": stream.sign, cursor: StreamsHelper.cursor(try(:controller)),
          src: Railtie.mount.settings.streams_path)
      end

      def self.cursor(page) = page.respond_to?(:hikyaku_cursor, true) ? page.send(:hikyaku_cursor) : Railtie.mount.newest
    end
  end
end
