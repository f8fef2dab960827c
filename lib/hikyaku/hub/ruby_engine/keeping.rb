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

        # Positions of a gap that the ring remembers one by one; of a larger one it remembers nothing before.
        MOST_VOID = 1 << 20

        # What was published again at its position, with its key, has the same id and the same bytes.
        def restore(options, history)
          @storage = Storage.new(options.fetch(:folder), history: history, **options.except(:folder))
          @storage.open(lose: method(:lose)) do |entry|
            begin_with(@storage.key, entry.position)
            add(entry, topics: entry.topics.map { |topic| @topics[topic] }, type: entry.type, private: entry.private)
          end
          begin_with(@storage.key, @storage.next_position)
          forget_the_old
        end

        # The first that is restored says where the log begins, and with which key.
        def begin_with(key, position)
          return if @restored
          @restored = true
          @ids_of_positions = Log::Generations.new(Log::PositionCipher.new(key: key))
          @log.go_on_at(position)
        end

        # Updates are missing before the position that is next. All who read on from before are told, whatever they subscribe to.
        def lose(from, upto, key_before)
          begin_with(key_before, from)
          before = @ids_of_positions.seal(@log.head)
          @ids_of_positions.begin(upto, Log::PositionCipher.new(key: @storage.key)) unless key_before == @storage.key
          return @log.go_on_at(upto + 1) if upto - @log.head > MOST_VOID
          id = @ids_of_positions.seal(upto)
          gap = Gap.event(id: id, after: before, reason: "lost")
          @log.append_at(upto, Record.new(frame: gap, topics: [], id: id, private: false))
        end

        def keep(update, topics, type)
          @ticket = @storage.append(update, topics: topics.map(&:value), type: type)
          @storage.retain(from: @log.first)
        end

        def forget_the_old
          @log.keep_from(@storage.young_from)
          @storage.retain(from: @log.first)
        end
      end

      private_constant :Keeping
    end
  end
end
