# frozen_string_literal: true

require_relative "../storage"

module Hikyaku
  class Hub
    class RubyEngine
      # Writes each update to the journal before any subscriber is sent it, and restores the log from the journal. The twin of
      # hk_hub_persist.
      class Persistence
        # What `await` takes, for the newest update; nil when it is as safe as the storage promises.
        attr_reader :ticket

        def initialize(log, topics, history, options)
          @log = log
          @ticket = nil
          @storage = Storage.new(options.fetch(:folder), history: history, **options.except(:folder))
          @storage.open(lose: method(:lose)) do |entry|
            restart(@storage.key, entry.position)
            log.append(entry, topics: entry.topics.map { |topic| topics[topic] }, type: entry.type, private: entry.private)
          end
          restart(@storage.key, @storage.next_position)
          forget_old
        end

        def append(update, topics, type)
          @ticket = @storage.append(update, topics: topics.map(&:value), type: type)
          @storage.retain(from: @log.first)
        end

        def await(ticket) = @storage.await(ticket)

        # Drops the updates that are older than the storage retains them.
        def forget_old
          @log.keep_from(@storage.retained_from)
          @storage.retain(from: @log.first)
        end

        def close = @storage.close

        def abandon = @storage.abandon

        private

        # The first entry says where the log begins, and with which key: at the same position, with the same key, an update becomes the
        # same event.
        def restart(key, position)
          return if @restarted
          @restarted = true
          @log.rekey(Log::PositionCipher.new(key: key))
          @log.restart_at(position)
        end

        # Updates are missing up to a position. All who read on from before it are told, whatever they subscribe to.
        def lose(from, upto, key_before)
          restart(key_before, from)
          @log.append_gap(upto, (Log::PositionCipher.new(key: @storage.key) unless key_before == @storage.key))
        end
      end
      private_constant :Persistence
    end
  end
end
