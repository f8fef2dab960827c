# frozen_string_literal: true

module Hikyaku
  class Hub
    class Storage
      # What of a journal may take long, in two threads: bringing to the disk, and making space. While one sync runs, whoever comes
      # gathers for the next.
      class Syncing
        def initialize(journal, lock)
          @journal = journal
          @lock = lock
          @done = ConditionVariable.new
          @syncing = ConditionVariable.new
          @spacing = ConditionVariable.new
          @threads = []
        end

        # There may be something to do. With the lock.
        def rouse
          return unless @journal.sync_wanted? || @journal.space_wanted?
          start unless @threads.any?
          @syncing.signal if @journal.sync_wanted?
          @spacing.signal if @journal.space_wanted?
        end

        # Waits until a block says that it is enough.
        def await
          @lock.synchronize do
            until yield
              raise @journal.trouble if @journal.trouble
              @done.wait(@lock, 1)
            end
          end
        end

        # Ends the threads.
        def stop
          @lock.synchronize do
            @stopping = true
            [@syncing, @spacing].each(&:signal)
          end
          @threads.each(&:join)
        end

        private

        def start
          @threads = [
            work(@syncing, -> { @journal.sync_wanted? }) { @journal.sync },
            work(@spacing, -> { @journal.space_wanted? }) { @journal.make_space }
          ]
        end

        # What waited for a segment to get its name is written when it has it.
        def work(due, wanted)
          Thread.new do
            @lock.synchronize do
              loop do
                due.wait(@lock, 1) until wanted.call || @stopping
                break if @stopping
                without_lock { yield }
                @journal.write if @journal.pending?
                rouse
                @done.broadcast
              end
            end
          rescue Log::Journal::Failed
            # Whoever waits, and whoever publishes next, is told.
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
      private_constant :Syncing
    end
  end
end
