# frozen_string_literal: true

require_relative "../../log/journal/errors"
require_relative "../permission"
require_relative "../wire/code"
require_relative "text"

module Hikyaku
  module Broker
    class RubyEngine
      # What a QUERY tells of dead letters, and does with them.
      class DeadLetters
        # Bytes of a payload that a report shows.
        SHOWN_BYTES = 256
        private_constant :SHOWN_BYTES

        def initialize(parts, reports)
          @parts = parts
          @reports = reports
        end

        def report(session, frame)
          queue = @reports.queue_for(session, frame) or return
          letters = queue.dead.each_value.select { |message| message.id > frame.number }
          list = @reports.first_of(letters, frame, &:id).map { |message| describe(message) }
          @reports.report(session, frame, {dead: list}, list)
        rescue Log::Journal::Unread
          @parts.output.refuse(session, frame.id, Wire::Code::OVERLOADED, "there is no open file left for this report: ask again")
        end

        def revive(session, frame)
          queue, letters = chosen(session, frame)
          return unless letters
          letters.each { |message| @parts.messages.revive(message) }
          @reports.report(session, frame, {count: letters.size})
          @parts.deliveries.dispatch(queue)
        end

        def delete(session, frame)
          _, letters = chosen(session, frame)
          return unless letters
          letters.each { |message| @parts.messages.remove(message) }
          @reports.report(session, frame, {count: letters.size})
        end

        private

        def describe(message)
          payload = (message.content || @parts.store.content(message)).byteslice(message.properties_size..)
          {id: message.id, reason: message.death, words: Text.readable(message.reason), failures: message.failures, crashes: message.crashes,
           age_ms: @reports.age(message), bytes: message.size, payload: [payload.byteslice(0, SHOWN_BYTES)].pack("m0")}
        end

        # Returns the queue and its letters that a request names, one or all, or refuses it and returns nil.
        def chosen(session, frame)
          if frame.number.zero?
            queue = @reports.queue_for(session, frame) or return
            return [queue, queue.dead.values.sort_by(&:id)]
          end
          message = @parts.messages[frame.number]
          return @reports.no_message(session, frame, "dead letter") unless message && message.state == :dead
          return @reports.refuse(session, frame, message.queue.key) unless session.may?(Permission::MANAGE, message.queue.key)
          [message.queue, [message]]
        end
      end
    end
  end
end
