# frozen_string_literal: true

module Hikyaku
  class Hub
    class Storage
      # Does what takes long in a journal in two threads: syncing, and preparing the next segment. While one sync runs, updates
      # gather for the next.
      class FlushWorker
        def initialize(journal, lock)
          @journal = journal
          @lock = lock
          @done = ConditionVariable.new
          @sync_wanted = ConditionVariable.new
          @space_wanted = ConditionVariable.new
          @threads = []
        end

        # Wakes the threads that have something to do. Call it with the lock.
        def wake
          return unless @journal.sync_wanted? || @journal.space_wanted?
          start unless @threads.any?
          @sync_wanted.signal if @journal.sync_wanted?
          @space_wanted.signal if @journal.space_wanted?
        end

        # Waits until the block returns true.
        def await
          @lock.synchronize do
            until yield
              raise @journal.trouble if @journal.trouble
              @done.wait(@lock, 1)
            end
          end
        end

        def stop
          @lock.synchronize do
            @stopping = true
            [@sync_wanted, @space_wanted].each(&:signal)
          end
          @threads.each(&:join)
        end

        private

        def start
          @threads = [
            work(@sync_wanted, -> { @journal.sync_wanted? }) { @journal.sync },
            work(@space_wanted, -> { @journal.space_wanted? }) { @journal.make_space }
          ]
        end

        def work(signal, wanted)
          Thread.new do
            @lock.synchronize do
              loop do
                signal.wait(@lock, 1) until wanted.call || @stopping
                break if @stopping
                without_lock { yield }
                # Records that waited for the next segment can be written now.
                @journal.write if @journal.pending?
                wake
                @done.broadcast
              end
            end
          rescue Log::Journal::Failed
            # Those that wait, and the next publish, find the failure in the journal.
            @lock.synchronize { @done.broadcast }
          end
        end

        def without_lock
          @lock.unlock
          yield
        ensure
          @lock.lock
        end
      end
      private_constant :FlushWorker
    end
  end
end
