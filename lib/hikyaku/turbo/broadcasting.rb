# frozen_string_literal: true

require_relative "../turbo"

module Hikyaku
  module Turbo
    # Put before Turbo::Streams::Broadcasts: whoever broadcasts, models, jobs or a class of the application that extends it,
    # ends in `broadcast_stream_to`.
    #
    # @api private
    module Broadcasting
      # @param streamables [Array] what the stream is named after; without any, nothing is done
      # @param content [String]
      # @return [void]
      def broadcast_stream_to(*streamables, content:)
        streamables.flatten!
        streamables.compact_blank!
        return if streamables.empty?
        # Out of Active Support's own kind of String.
        Turbo.publish(stream_name_from(streamables), content.respond_to?(:to_str) ? String.new(content.to_str) : content)
      end

      # Of a class of Action Cable that is extended with turbo-rails' broadcasts: the stream that its `stream_for` follows.
      #
      # @param model [Object, Array]
      # @param message [String, Object] elements `<turbo-stream>`; anything else, which no page renders, goes by Action Cable
      # @return [void]
      def broadcast_to(model, message)
        message.respond_to?(:to_str) ? Turbo.publish(broadcasting_for(model), String.new(message.to_str)) : super
      end

      # A job that is enqueued inside of a transaction may run before its end, find nothing, and be discarded.
      #
      # @return [void]
      def broadcast_action_later_to(*streamables, **options)
        AfterCommit.call { super }
      end

      # @return [void]
      def broadcast_render_later_to(*streamables, **rendering)
        AfterCommit.call { super }
      end

      # @param request_id [String, nil] of the request that is served now, not of the one at the end of the transaction
      # @return [void]
      def broadcast_refresh_later_to(*streamables, request_id: ::Turbo.current_request_id, **options)
        AfterCommit.call { super }
      end
    end
  end
end
