# frozen_string_literal: true

require_relative "../level"
require_relative "../wire"
require_relative "answer"

module Hikyaku
  module Broker
    class RubyEngine
      # What clients are told: answers when their level is reached, refusals at once.
      module Answering
        private

        # @return [nil]
        def deny(session, id, code, sentence, retry_after: 0, delivery: 0, scope: 0)
          @refused[code] += 1
          session.outbox << Wire.error(id: id, code: code, sentence: sentence, retry_after: retry_after, delivery: delivery, scope: scope)
          speak(session)
          nil
        end

        def invalid(session, id, sentence) = deny(session, id, Wire::Code::INVALID, sentence)

        # A SEND was taken. In a row with the one before, they have one answer.
        def acknowledge_message(session, id, level, value, bytes)
          @sync_asked = true if level == Level::SYNCED
          return if id.zero?
          if level > 0
            session.unanswered += 1
            session.unanswered_bytes += bytes
          end
          return if session.answer&.extend_by(id, level, value, bytes)
          @answers << (session.answer = Answer.new(session, Wire::Type::SEND, id, level, 0, value, 1, bytes))
        end

        # What is not numbered is answered only if it fails.
        #
        # @return [Answer, nil] for what else it says
        def answer(session, request, id, level, count: 0, value: 0, messages: 0, bytes: 0)
          @sync_asked = true if level == Level::SYNCED
          return if id.zero?
          if level > 0 && messages > 0
            session.unanswered += messages
            session.unanswered_bytes += bytes
          end
          session.answer = nil
          answer = Answer.new(session, request, id, level, count, value, messages, bytes)
          @answers << answer
          answer
        end

        # The end of a turn: what is in memory is answered, the rest waits for what was appended.
        def file_answers(position)
          @answers.each do |answer|
            session = answer.session
            session.answer = nil
            if answer.level.zero?
              tell(answer)
            else
              answer.position = position
              ((answer.level == Level::WRITTEN) ? @unwritten : @unsynced) << answer
            end
          end
          @answers.clear
          return unless @sync_asked
          @ledger.want_sync(position)
          @sync_asked = false
        end

        # Tells those whose level is reached now.
        def tell_reached
          written = @ledger.written
          tell(@unwritten.shift) while @unwritten.any? && @unwritten.first.position <= written
          return if @unsynced.empty?
          synced = @ledger.synced
          tell(@unsynced.shift) while @unsynced.any? && @unsynced.first.position <= synced
        end

        def tell(answer)
          session = answer.session
          if answer.level > 0
            session.unanswered -= answer.messages
            session.unanswered_bytes -= answer.bytes
          end
          return if session.state == :gone
          session.outbox << answer.to_frame
          speak(session)
        end

        # There is something to be sent to it.
        def speak(session)
          return if session.listed || session.blocked
          session.listed = true
          @ready << session
        end
      end
    end
  end
end
