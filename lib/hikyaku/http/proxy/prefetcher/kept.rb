# frozen_string_literal: true

require_relative "ahead"

module Hikyaku
  module HTTP
    class Proxy
      class Prefetcher
        # What was fetched ahead and nobody came for yet: bounded in number, bytes and time. A thread looks after it while there is something.
        #
        # Whoever begins a fetch holds the client's lock, and then takes this one. So nothing is canceled while this one is held.
        class Kept
          # How often is looked at the bytes of what is on its way, seconds.
          PAUSE = 0.05
          private_constant :PAUSE

          # @param most [Integer]
          # @param most_bytes [Integer]
          # @param lifetime [Numeric] seconds
          def initialize(most:, most_bytes:, lifetime:)
            @most = most
            @most_bytes = most_bytes
            @lifetime = lifetime
            @lock = Mutex.new
            @changed = ConditionVariable.new
            @entries = {}
            @keeper = nil
          end

          # @param key [Array]
          # @yieldreturn [Ahead] which is kept, if there is a place and nothing of that key
          # @return [void]
          def add(key)
            return if @lock.synchronize { @entries.key?(key) || @entries.size >= @most }
            entry = yield
            @lock.synchronize do
              @entries[key] = entry
              @keeper = Thread.new { look_after } unless @keeper&.alive?
              @changed.signal
            end
          end

          # @param key [Array]
          # @return [Ahead, nil] which is the caller's now
          def take(key, now)
            found = @lock.synchronize { @entries[key]&.tap { |entry| forget(key => entry) } } or return
            return found unless old?(found, now)
            found.fetch.cancel
            nil
          end

          # Those that a server was not asked for yet go.
          #
          # @yieldparam key [Array]
          # @yieldparam entry [Ahead]
          # @yieldreturn [Boolean] whether it is meant
          # @return [void]
          def withdraw(&meant)
            gone = chosen(&meant).select { |_, entry| entry.fetch.withdraw }
            @lock.synchronize { forget(gone) }
          end

          # @yieldparam key [Array]
          # @yieldparam entry [Ahead]
          # @yieldreturn [Boolean] whether it goes
          # @return [void]
          def drop(&meant)
            gone = chosen(&meant)
            @lock.synchronize { forget(gone) }
            cancel(gone)
          end

          # @return [Integer]
          def size = @lock.synchronize { @entries.size }

          # @return [Integer]
          def bytes = @lock.synchronize { sum }

          private

          def chosen(&meant) = @lock.synchronize { @entries.select(&meant) }

          # Another may have come in its place meanwhile.
          def forget(gone)
            gone.each { |key, entry| @entries.delete(key) if @entries[key].equal?(entry) }
            @changed.signal if @entries.empty?
          end

          def cancel(gone) = gone.each { |_, entry| entry.fetch.cancel }

          def look_after
            loop do
              gone = @lock.synchronize do
                surplus(now).tap { |found| forget(found) }
              end
              cancel(gone)
              @lock.synchronize do
                return @keeper = nil if @entries.empty?
                @changed.wait(@lock, pause)
              end
            end
          end

          def pause
            return PAUSE if @entries.any? { |_, entry| entry.pending? }
            [@entries.first.last.at + @lifetime - now, PAUSE].max
          end

          def surplus(now)
            old = @entries.select { |_, entry| old?(entry, now) }
            bytes = sum - old.sum { |_, entry| entry.bytes }
            return old if bytes <= @most_bytes
            dispensable(@entries.to_a - old.to_a).each do |key, entry|
              break if bytes <= @most_bytes
              bytes -= entry.bytes
              old[key] = entry
            end
            old
          end

          # What is of pages before the newest goes first. Of that nothing more is fetched then, and what the browser asks for last goes first.
          def dispensable(entries)
            newest = entries.last.last.page
            before, rest = entries.partition { |_, entry| !entry.page.equal?(newest) }
            coming, come = rest.partition { |_, entry| entry.pending? }
            before + coming + come.reverse
          end

          def sum = @entries.each_value.sum(&:bytes)

          def old?(entry, now) = now - entry.at >= @lifetime

          def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
      end
    end
  end
end
