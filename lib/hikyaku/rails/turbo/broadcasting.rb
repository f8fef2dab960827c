# frozen_string_literal: true

require_relative "../turbo"

module Hikyaku
  module Turbo
    # Put before Turbo::Streams::Broadcasts: whoever broadcasts, models, jobs or a class of the application that extends it,
    # ends in `broadcast_stream_to`.
    module Broadcasting
      def broadcast_stream_to(*streamables, content:)
        streamables.flatten!
        streamables.compact_blank!
        return if streamables.empty?
        # Out of Active Support's own kind of String.
        Turbo.publish(stream_name_from(streamables), content.respond_to?(:to_str) ? String.new(content.to_str) : content)
      end

      # Of a class of Action Cable that is extended with turbo-rails' broadcasts: the stream that its `stream_for` follows.
      def broadcast_to(model, message)
        message.respond_to?(:to_str) ? Turbo.publish(broadcasting_for(model), String.new(message.to_str)) : super
      end

      # A job that is enqueued inside of a transaction may run before its end, find nothing, and be discarded.
      def broadcast_action_later_to(*streamables, **options)
        AfterCommit.call { super }
      end

      def broadcast_render_later_to(*streamables, **rendering)
        AfterCommit.call { super }
      end

      def broadcast_refresh_later_to(*streamables, request_id: ::Turbo.current_request_id, **options)
        AfterCommit.call { super }
      end
    end
  end
end
