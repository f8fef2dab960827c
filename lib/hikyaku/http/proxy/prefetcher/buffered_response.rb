# frozen_string_literal: true

require_relative "../../client"

module Hikyaku
  module HTTP
    class Proxy
      class Prefetcher
        # A response that the browser has not requested yet. It is read up to a limit. The browser's request takes what is buffered, and what still comes, at the
        # browser's pace.
        #
        #     reading ──► stopped (it is long, or the store is full) ──► taken
        #        └─────────────────────────────────────────────────────────┘
        class BufferedResponse < Client::Stream
          MAX_BYTES = 1_048_576
          # The client moves the requests behind a longer response to other connections.
          LONG_BYTES = 262_144
          # The browser gets a response of at most so many bytes, by its Content-Length, in one piece.
          SHORT_BYTES = 16_384
          private_constant :MAX_BYTES, :LONG_BYTES, :SHORT_BYTES

          # When it was complete or stopped; nil before.
          attr_reader :settled_at

          def initialize(...)
            super
            @received = 0
            @store = @entry = @settled_at = @on_head = nil
            @taken = @stopped = @aside = false
          end

          # From now on it tells the store how it grows, and the entry of the page log when it ends. The caller holds the client's lock.
          def attach(store, entry, &on_head)
            @store = store
            @entry = entry
            @head ? on_head&.call(@head) : @on_head = on_head
            full = store.grew(self, @received)
            done? ? finish_entry : (stop if full)
          end

          # The browser requests it.
          def take!
            @driver.synchronize do
              @taken = true
              @flow&.resume if @stopped && !full?
            end
            self
          end

          def long? = full? && !done?

          def stopped? = @stopped && !done?

          # The store has room again.
          def resume
            @driver.synchronize do
              next if !@stopped || @taken || full? || done?
              @stopped = false
              @settled_at = nil
              @flow&.resume
            end
          end

          def satisfied? = done? || ((@waits_for == :head) ? !@head.nil? && !short? : super)

          def head_came(...)
            super
            on_head, @on_head = @on_head, nil
            on_head&.call(@head)
          end

          def push(piece)
            @received += piece.bytesize
            super
            return if @taken || piece.empty?
            store_full = @store&.grew(self, piece.bytesize)
            stop if store_full || full?
            step_aside if @received > LONG_BYTES && !@aside
          end

          def complete(outcome)
            return if done?
            super
            @settled_at = @driver.now
            share_body(outcome)
            finish_entry
          end

          def anew
            return false if @taken
            @store&.grew(self, -@received)
            @pieces.clear
            @received = @bytes = 0
            @head = nil
            true
          end

          private

          def head
            @waits_for = :head
            @driver.wait(self)
            @head || @outcome.value
          end

          def short?
            length = @head["content-length"]
            !length.nil? && length.to_i <= SHORT_BYTES
          end

          def full? = @bytes > MAX_BYTES

          # The client's cache keeps the outcome: the same bytes need no second copy.
          def share_body(outcome)
            @pieces.replace([outcome.body]) if outcome.error.nil? && @pieces.any? && outcome.body.bytesize == @bytes
          end

          def stop
            return if @stopped
            @stopped = true
            @settled_at = @driver.now
            @flow&.pause
          end

          def step_aside
            @aside = true
            @flow&.step_aside
          end

          def finish_entry
            return unless @entry
            failed = !@outcome.error.nil?
            @entry.finish(failed ? nil : @outcome.status, @received, @settled_at)
            @entry.cached unless failed || !@outcome.cached?
          end
        end
      end
    end
  end
end
