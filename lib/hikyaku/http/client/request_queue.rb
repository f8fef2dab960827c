# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      # What waits to be asked at one origin, the most urgent first. Each kind waits in a line of its own, so that what has no place yet, as what wants a
      # connection to itself while all are in use, keeps nothing of another kind from going.
      class RequestQueue
        # Behind others; on a connection that is idle; on one that the server surely keeps; on one that was not used before.
        KINDS = %i[pipelined alone unsafe solitary].freeze
        private_constant :KINDS

        def initialize
          @lines = KINDS.to_h { |kind| [kind, []] }
          @all = @lines.values
          @pipelined = @lines.fetch(:pipelined)
        end

        def add(exchange)
          line = @lines.fetch(kind(exchange))
          line.insert(line.bsearch_index { |other| order(other, exchange) > 0 } || line.size, exchange)
        end

        def size = @all.sum(&:size)

        def empty? = @pipelined.empty? && @all.all?(&:empty?)

        def count(*kinds) = kinds.sum { |kind| @lines.fetch(kind).size }

        def first = heads.map(&:first).min { |one, other| order(one, other) }

        def take_pipelined(least, most = least)
          @pipelined.shift([least, most].max) if @pipelined.size >= least
        end

        # Offers each in turn, the most urgent first; when one has no place, those of its kind behind it have none either.
        def hand_out
          lines = heads
          until lines.empty?
            line = lines.one? ? lines.first : lines.min { |one, other| order(one.first, other.first) }
            placed = yield line.first
            line.shift if placed
            lines.delete_if { |each| each.equal?(line) } if !placed || line.empty?
          end
        end

        # Those that nobody wants any more.
        def drop_canceled = @all.each { |line| line.reject!(&:canceled?) unless line.empty? }

        def clear
          all = @all.flatten(1).sort { |one, other| order(one, other) }
          @all.each(&:clear)
          all
        end

        private

        def heads = @all.reject(&:empty?)

        def kind(exchange)
          return :solitary if exchange.solitary?
          return :pipelined if exchange.pipelined?
          exchange.request.idempotent? ? :alone : :unsafe
        end

        def order(one, other)
          by_priority = one.request.priority <=> other.request.priority
          by_priority.zero? ? one.number <=> other.number : by_priority
        end
      end

      # What is asked at one origin, but not yet: its server wants to be asked later.
      class DeferredRequests
        def initialize = @waiting = []

        def add(exchange, at)
          @waiting << [at, exchange]
          @waiting.sort_by!(&:first)
        end

        def empty? = @waiting.empty?

        def next_at = @waiting.first&.first

        # Gives those whose time has come, which are forgotten here; so are those that nobody wants any more.
        def due(now)
          @waiting.reject! { |_, exchange| exchange.canceled? }
          yield @waiting.shift.last while @waiting.any? && @waiting.first.first <= now
        end

        def clear = @waiting.map(&:last).tap { @waiting = [] }
      end
    end
  end
end
