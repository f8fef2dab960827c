# frozen_string_literal: true

require_relative "../../support/clock"

module Hikyaku
  module HTTP
    class Proxy
      # Looks whether browsers are still there while their answers are awaited. One that has left wants nothing any more: what no server was asked for yet is
      # not asked for, and the rest let go where it would hold up what is asked next, see {Client#abandon}.
      #
      # A client that has ended but its own half of the connection looks the same: it has its answer where a server was asked already, and begins to answer
      # within some seconds, and where that holds up nobody. Browsers and curl end both halves.
      class Watch
        include Support::Clock

        # How often is looked, seconds.
        PAUSE = 0.1
        # A server may not answer at all: what was left is looked at again after so many seconds, as long as it comes.
        AGAIN = 1.0
        # When nothing was asked for so long, there is time to tidy up, seconds.
        QUIET = 5.0
        private_constant :PAUSE, :AGAIN, :QUIET

        def initialize(quiet: QUIET, &rests)
          @quiet = quiet
          @rests = rests
          @asked_at = nil
          @lock = Mutex.new
          @come = ConditionVariable.new
          @watched = {}.compare_by_identity
          @left = []
          @again_at = 0.0
          @thread = nil
        end

        def over(wire, leaves)
          @lock.synchronize do
            @watched[wire] = leaves
            @asked_at = now
            @thread = Thread.new { look_after } unless @thread&.alive?
            @come.signal if @watched.size == 1
          end
          yield
        ensure
          @lock.synchronize do
            @watched.delete(wire)
            @asked_at = now
          end
        end

        def close = @thread&.kill

        private

        def look_after
          loop do
            sleep PAUSE
            gone = @lock.synchronize do
              rest while @watched.empty? && @left.empty?
              @watched.select { |wire, _| wire.gone? }.each_key { |wire| @watched.delete(wire) }
            end
            abandon(gone.each_value.filter_map(&:call)) if gone.any? || (@left.any? && now >= @again_at)
          end
        end

        # Until somebody asks.
        def rest
          left = @asked_at ? @asked_at + @quiet - now : nil
          return @come.wait(@lock, left) if left.nil? || left.positive?
          @asked_at = nil
          @lock.unlock
          begin
            @rests&.call
          ensure
            @lock.lock
          end
        end

        # What was left before, and still comes, counts as well.
        def abandon(left)
          @left = @left.reject { |_, stream| stream.done? } + left
          @again_at = now + AGAIN
          @left.group_by(&:first).each do |client, all|
            streams = all.map(&:last).each(&:withdraw)
            client.abandon(streams)
          end
        end
      end
    end
  end
end
