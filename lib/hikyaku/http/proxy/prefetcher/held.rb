# frozen_string_literal: true

require_relative "../../client"

module Hikyaku
  module HTTP
    class Proxy
      class Prefetcher
        # An answer that nobody has come for yet: it is read up to a bound, and no further. Who comes for it, while it comes or after, takes what is kept of
        # it, and what goes on to come as fast as they take it.
        #
        #     coming ──► stopped (it is long, or too much is kept) ──► taken
        #        └────────────────────────────────────────────────────────┘
        class Held < Client::Stream
          # Of one; more is not read before somebody comes for it.
          MOST_BYTES = 1_048_576
          # One that is longer may take long: what was asked for behind it goes elsewhere.
          LONG_BYTES = 262_144
          # One that is shorter, and says so, is waited for: it is given in one piece.
          SHORT_BYTES = 16_384
          private_constant :MOST_BYTES, :LONG_BYTES, :SHORT_BYTES

          def initialize(...)
            super
            @received = 0
            @kept = @note = @since = @heard = nil
            @taken = @stopped = @aside = false
          end

          attr_reader :since

          # From now on it is kept. Nothing comes meanwhile.
          def keep(kept, note, &heard)
            @kept = kept
            @note = note
            @head ? heard&.call(@head) : @heard = heard
            over = kept.grew(self, @received)
            done? ? tell : (stop if over)
          end

          # Somebody has come for it.
          def take!
            @driver.synchronize do
              @taken = true
              @flow&.resume if @stopped && !full?
            end
            self
          end

          def long? = full? && !done?

          def stopped? = @stopped && !done?

          # There is a place again.
          def go_on
            @driver.synchronize do
              next if !@stopped || @taken || full? || done?
              @stopped = false
              @since = nil
              @flow&.resume
            end
          end

          def satisfied? = done? || ((@waits_for == :head) ? !@head.nil? && !short? : super)

          def head_came(...)
            super
            heard, @heard = @heard, nil
            heard&.call(@head)
          end

          def push(piece)
            @received += piece.bytesize
            super
            return if @taken || piece.empty?
            over = @kept&.grew(self, piece.bytesize)
            stop if over || full?
            step_aside if @received > LONG_BYTES && !@aside
          end

          def complete(outcome)
            return if done?
            super
            @since = @driver.now
            keep_once(outcome)
            tell
          end

          def anew
            return false if @taken
            @kept&.grew(self, -@received)
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

          def full? = @bytes > MOST_BYTES

          # The same bytes stand in the outcome, for the cache.
          def keep_once(outcome)
            @pieces.replace([outcome.body]) if outcome.error.nil? && @pieces.any? && outcome.body.bytesize == @bytes
          end

          def stop
            return if @stopped
            @stopped = true
            @since = @driver.now
            @flow&.pause
          end

          def step_aside
            @aside = true
            @flow&.step_aside
          end

          def tell
            return unless @note
            failed = !@outcome.error.nil?
            @note.finish(failed ? nil : @outcome.status, @received, @since)
            @note.cached unless failed || !@outcome.cached?
          end
        end
      end
    end
  end
end
