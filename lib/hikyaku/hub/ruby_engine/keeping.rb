# frozen_string_literal: true

require_relative "../storage"

module Hikyaku
  class Hub
    class RubyEngine
      # What outlives the process: the log is written down before anybody sees what is new, and read when the engine is made.
      module Keeping
        def ticket = @ticket

        def await(ticket) = @storage.await(ticket)

        def close_storage
          @storage&.close
        end

        def abandon_storage
          @storage&.abandon
          @storage = @ticket = nil
        end

        private

        # What was published again at its position, with its key, has the same id and the same bytes.
        def restore(options, history)
          @storage = Storage.new(options.fetch(:folder), history: history, **options.except(:folder))
          @storage.open do |entry|
            @cipher = Log::PositionCipher.new(key: @storage.key) if @log.head.zero?
            @log.go_on_at(entry.position) { |evicted, at| @ids.remove(evicted.id, at) }
            add(entry, topics: entry.topics.map { |topic| @topics[topic] }, type: entry.type, private: entry.private)
          end
          @cipher = Log::PositionCipher.new(key: @storage.key)
          @log.go_on_at(@storage.next_position) { |evicted, at| @ids.remove(evicted.id, at) }
          forget_the_old
        end

        def keep(update, topics, type)
          @ticket = @storage.append(update, topics: topics.map(&:value), type: type)
          @storage.retain(from: @log.first)
        end

        def forget_the_old
          @log.keep_from(@storage.young_from) { |evicted, at| @ids.remove(evicted.id, at) }
          @storage.retain(from: @log.first)
        end
      end

      private_constant :Keeping
    end
  end
end
