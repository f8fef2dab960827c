# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
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
