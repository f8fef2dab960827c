# frozen_string_literal: true

require_relative "../../../support/clock"
require_relative "ahead"

module Hikyaku
  module HTTP
    class Proxy
      class Prefetcher
        # What is fetched ahead and nobody came for yet: bounded in number, bytes and time. A thread looks after it while there is something.
        #
        # Whoever begins a fetch, or gets a piece of it, holds the client's lock, and then takes this one. So nothing is canceled while this one is held.
        class Kept
          include Support::Clock

          # Not more often is it looked for what is old, seconds.
          PAUSE = 0.05
          # A server may not answer at all: what was left is looked at again after so many seconds, as long as it comes.
          AGAIN = 1.0
          # Of one origin so many wait in the midst of their answers: each of them keeps a connection from others.
          MOST_LONG = 2
          private_constant :PAUSE, :AGAIN, :MOST_LONG

          def initialize(most:, most_bytes:, lifetime:, &heard)
            @heard = heard
            @most = most
            @most_bytes = most_bytes
            @lifetime = lifetime
            @lock = Mutex.new
            @changed = ConditionVariable.new
            @entries = {}
            @counts = {}.compare_by_identity
            @bytes = 0
            @keeper = nil
            @news = false
          end

          def add(key)
            return if @lock.synchronize { @entries.key?(key) || @entries.size >= @most }
            entry = yield
            @lock.synchronize do
              put(key, entry)
              @keeper = Thread.new { look_after } unless @keeper&.alive?
            end
            listen(entry)
          end

          # Something is fetched in another way, in its own place. Whoever calls holds the lock of its client.
          def replace
            @lock.synchronize { @entries.to_a }.each do |key, entry|
              other = yield(entry) or next
              here = @lock.synchronize { @entries[key].equal?(entry) && put(key, other, before: entry) }
              here ? listen(other) : other.fetch.cancel
            end
          end

          # Bytes came.
          def grew(held, count)
            @lock.synchronize do
              before = @counts[held] or next false
              @counts[held] = before + count
              @bytes += count
              over = @bytes > @most_bytes
              changed if over || held.long?
              over
            end
          end

          def take(key, now)
            found = @lock.synchronize { @entries[key]&.tap { |entry| forget(key => entry) } } or return
            return found.tap { found.fetch.take! } unless old?(found, now)
            found.fetch.cancel
            nil
          end

          # Those that a server was not asked for yet go, and those that were stopped. Of the others those whose answers would hold up what is asked for next:
          # see {Client#abandon}.
          def withdraw(&meant)
            found = @lock.synchronize { @entries.to_a }.group_by { |key, entry| meant.call(key, entry) }
            waiting, all = found.values_at(:waiting, :all).map(&:to_a)
            (waiting + all).each { |_, entry| entry.fetch.withdraw }
            abandon(all.filter_map { |_, entry| entry if entry.pending? })
            @lock.synchronize do
              forget((waiting + all).select { |_, entry| entry.failed? })
              all.each { |_, entry| entry.left = true }
              changed
            end
          end

          def drop(&meant)
            gone = @lock.synchronize { @entries.select(&meant).tap { |found| forget(found) } }
            cancel(gone)
          end

          def size = @lock.synchronize { @entries.size }

          def bytes = @lock.synchronize { @bytes }

          private

          def put(key, entry, before: nil)
            @bytes -= @counts.delete(before.fetch) if before
            @counts[entry.fetch] = 0
            @entries[key] = entry
          end

          def listen(entry) = entry.fetch.keep(self, entry.note) { |head| @heard&.call(entry, head) }

          # Another may have come in its place meanwhile.
          def forget(gone)
            gone.each do |key, entry|
              @entries.delete(key) if @entries[key].equal?(entry)
              @bytes -= @counts.delete(entry.fetch).to_i
            end
            changed if @entries.empty?
          end

          def changed
            @news = true
            @changed.signal
          end

          def cancel(gone) = gone.each { |_, entry| entry.fetch.cancel }

          def abandon(entries)
            stopped, coming = entries.partition { |entry| entry.fetch.stopped? }
            stopped.each { |entry| entry.fetch.cancel }
            coming.group_by(&:client).each { |client, all| client.abandon(all.map(&:fetch)) }
          end

          def look_after
            loop do
              gone, stopped, left = @lock.synchronize { clear_out }
              cancel(gone)
              stopped.each { |entry| entry.fetch.go_on }
              abandon(left)
              @lock.synchronize do
                return @keeper = nil if @entries.empty?
                @changed.wait(@lock, pause) unless @news
              end
            end
          end

          def clear_out
            gone = surplus(now)
            forget(gone)
            @news = false
            stopped, others = @entries.values.partition { |entry| entry.fetch.stopped? }
            [gone, stopped, others.select { |entry| entry.left && entry.pending? }]
          end

          def pause
            soonest = @entries.each_value.filter_map { |entry| entry.fetch.since }.min
            most = (@entries.each_value.any? { |entry| entry.left && entry.pending? }) ? AGAIN : @lifetime
            [soonest ? [soonest + @lifetime - now, most].min : most, PAUSE].max
          end

          def surplus(now)
            gone = @entries.select { |_, entry| old?(entry, now) || entry.failed? }.merge(too_long)
            bytes = @bytes - gone.sum { |_, entry| @counts[entry.fetch] }
            return gone if bytes <= @most_bytes
            dispensable(@entries.reject { |key, _| gone.key?(key) }.to_a).each do |key, entry|
              break if bytes <= @most_bytes
              bytes -= @counts[entry.fetch]
              gone[key] = entry
            end
            gone
          end

          # What the browser asks for last goes first.
          def too_long
            long = @entries.select { |_, entry| entry.fetch.long? && entry.pending? }
            long.group_by { |_, entry| entry.origin }.flat_map { |_, all| all.drop(MOST_LONG) }.to_h
          end

          # What is of pages before the newest goes first. Of that goes first what the browser asks for last, most of which has not come yet.
          def dispensable(entries)
            newest = entries.last.last.page
            before, rest = entries.partition { |_, entry| !entry.page.equal?(newest) }
            before + rest.reverse
          end

          def old?(entry, now) = !entry.fetch.since.nil? && now - entry.fetch.since >= @lifetime
        end
      end
    end
  end
end
