# frozen_string_literal: true

require "json"
require_relative "event"

module Hikyaku
  class Hub
    # The event that tells a reader in its stream that events may be missing. A browser's EventSource cannot see response headers.
    #
    #     event: mercure
    #     id: #PGzYTzR-0Sg
    #     data: {"type":"gap","reason":"overrun","last_event_id":"#0a…","matches":[{"match":"/news","match_type":"exact"}]}
    #
    # `reason` is `overrun` (the history did not reach back to a slow reader), `unknown` (the hub does not know the event that the reader
    # named: it is too old, or the hub was restarted) or `lost` (the hub lost events here, by a loss of power or damage to its
    # storage). `last_event_id` is the last event before the gap. The stream goes on after `id` with the oldest event that is retained.
    # Publishers cannot forge it: the type `mercure` is reserved.
    module Gap
      module_function

      def event(id:, after:, reason:, matchers: [])
        document = {type: "gap", reason: reason, last_event_id: printable(after)}
        unless matchers.empty?
          document[:matches] = matchers.map { |matcher| {match: matcher.pattern, match_type: matcher.type} }
        end
        Event.encode(id: id, data: JSON.generate(document), type: "mercure")
      end

      def printable(id) = id.dup.force_encoding(Encoding::UTF_8).scrub.byteslice(0, 1024).scrub

      private_class_method :printable
    end
  end
end
