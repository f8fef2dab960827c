# frozen_string_literal: true

require "fileutils"
require_relative "../storage"

module Hikyaku
  class Hub
    class NativeEngine
      # What outlives the process: the engine writes its log down by itself, and reads it when it is made.
      module Keeping
        # Seconds for which an update waits for the next segment, and between two tries.
        PATIENCE = 5
        PAUSE = 0.001
        private_constant :PATIENCE, :PAUSE

        def ticket = _ticket

        def await(ticket)
          _await(ticket) or raise StorageFailed, "whether the update is kept is in doubt: #{trouble}"
        end

        def close_storage
          said = trouble
          _close_storage(true) or raise StorageFailed, "the history could not be ended in order: #{said}"
        ensure
          @watermark&.close
        end

        def abandon_storage
          _close_storage(false)
          @watermark&.close
        end

        private

        # What was published again at its position, with its key, has the same id and the same bytes.
        def restore(storage, history)
          folder = storage.fetch(:folder)
          FileUtils.mkdir_p(folder, mode: 0o700)
          age = ((storage[:age] || 0) * 1000).round
          now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          wall = Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond)
          watermark = Storage::Watermark.new(folder, **storage.slice(:boot))
          status, trouble = Log::Journal::Reading.of(folder, storage[:report]) do |reading|
            _open_storage(folder, Storage.segment_bytes(history), storage[:level] == :synced, age, now, wall, watermark.read, watermark.copied?, reading) do |position, topics, data, id, type, retry_after, private|
              _publish(data, topics.map { |topic| yield topic }, id, type, retry_after, private, now, position)
            end
          end
          refuse_to_open(folder, status, trouble) if status
          watch(watermark)
          tell(folder, storage, watermark.copied?) if storage[:report]
        rescue SystemCallError => error
          raise StorageFailed, "the hub's history cannot be kept in #{folder}: #{error.message}"
        end

        def watch(watermark)
          watermark.begin(_storage_next - 1)
          _watch(watermark.file.fileno, Storage::Watermark::POSITION_AT, watermark.timed?) if watermark.file
          @watermark = watermark
        end

        def tell(folder, storage, copied)
          number, holes, tail = _storage_findings
          segment = Log::Journal::Format.segment_name(number)
          holes.each { |from, to, missing| storage[:report].call(:error, Storage::Loss.hole(folder, segment, from, to, missing)) }
          return unless tail
          newest, known, space = tail
          storage[:report].call(:error, Storage::Loss.tail(folder, level: storage[:level], newest: newest, known: known, space: space, copied: copied))
        end

        def refuse_to_open(folder, status, trouble)
          raise Log::Journal.refusal(folder, status, trouble) || StorageFailed.new("the hub's history cannot be kept in #{folder}: #{trouble.first}")
        end

        # The disk may be slower than those who publish: they wait for the next segment, for a while.
        def keep_trying
          deadline = nil
          while (id = yield).nil?
            now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
            raise StorageFailed, "the update cannot be kept: the disk has not made space for it in #{PATIENCE} s" if now > (deadline ||= now + PATIENCE)
            sleep PAUSE
          end
          id or raise StorageFailed, "the update cannot be kept: #{trouble}"
        end

        def trouble = _storage_trouble&.first || "there is no space on the disk, or it is larger than a segment"
      end

      private_constant :Keeping
    end
  end
end
