# frozen_string_literal: true

require_relative "../level"
require_relative "../wire"
require_relative "pending_ack"

module Hikyaku
  module Broker
    class RubyEngine
      # ACKs that wait for their level: for the end of the turn, for a write, or for a sync (docs/protocol.md, section 5).
      class Acks
        def initialize(parts)
          @parts = parts
          @new = []
          @unwritten = []
          @unsynced = []
          @sync_asked = false
        end

        def none? = @new.empty? && @unwritten.empty? && @unsynced.empty?

        # SENDs in a row get one ACK.
        def add_message(session, id, level, value, bytes)
          @sync_asked = true if level == Level::SYNCED
          return if id.zero?
          if level > 0
            session.unacked += 1
            session.unacked_bytes += bytes
          end
          return if session.last_ack&.extend_by(id, level, value, bytes)
          @new << (session.last_ack = PendingAck.new(session, Wire::Type::SEND, id, level, 0, value, 1, bytes))
        end

        # Returns nil for a request without an id: it is answered only if it fails.
        def add(session, request, id, level, count: 0, value: 0, messages: 0, bytes: 0)
          @sync_asked = true if level == Level::SYNCED
          return if id.zero?
          if level > 0 && messages > 0
            session.unacked += messages
            session.unacked_bytes += bytes
          end
          session.last_ack = nil
          ack = PendingAck.new(session, request, id, level, count, value, messages, bytes)
          @new << ack
          ack
        end

        # Ends a turn. `position` is the newest of the journal, or nil without storage.
        def end_turn(position)
          @new.each do |ack|
            ack.session.last_ack = nil
            if ack.level.zero?
              emit(ack)
            else
              ack.position = position
              ((ack.level == Level::WRITTEN) ? @unwritten : @unsynced) << ack
            end
          end
          @new.clear
          return unless @sync_asked
          @parts.store.want_sync(position)
          @sync_asked = false
        end

        # Sends those whose level is reached.
        def send_reached
          store = @parts.store
          written = store.written
          emit(@unwritten.shift) while @unwritten.any? && @unwritten.first.position <= written
          return if @unsynced.empty?
          synced = store.synced
          emit(@unsynced.shift) while @unsynced.any? && @unsynced.first.position <= synced
        end

        def clear = [@new, @unwritten, @unsynced].each(&:clear)

        private

        def emit(ack)
          session = ack.session
          if ack.level > 0
            session.unacked -= ack.messages
            session.unacked_bytes -= ack.bytes
          end
          @parts.output.send_frame(session, ack.to_frame) unless session.state == :gone
        end
      end
    end
  end
end
