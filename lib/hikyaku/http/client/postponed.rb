# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      # What is asked at one origin, but not yet: its server wants to be asked later.
      #
      # @api private
      class Postponed
        def initialize = @waiting = []

        # @param exchange [Exchange]
        # @param at [Float] seconds of the monotonic clock
        # @return [void]
        def add(exchange, at)
          @waiting << [at, exchange]
          @waiting.sort_by!(&:first)
        end

        # @return [Boolean]
        def empty? = @waiting.empty?

        # @return [Float, nil] seconds of the monotonic clock, when the next is due
        def next_at = @waiting.first&.first

        # Gives those whose time has come, which are forgotten here; so are those that nobody wants any more.
        #
        # @param now [Float] seconds of the monotonic clock
        # @yieldparam exchange [Exchange]
        # @return [void]
        def due(now)
          @waiting.reject! { |_, exchange| exchange.canceled? }
          yield @waiting.shift.last while @waiting.any? && @waiting.first.first <= now
        end

        # @return [Array<Exchange>] all, which are forgotten here
        def clear = @waiting.map(&:last).tap { @waiting = [] }
      end
    end
  end
end
