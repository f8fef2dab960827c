# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      # How much is asked of an origin at once, as a rule: a page with all that belongs to it, or one thing now and then. Connections are opened before it
      # is known what will be asked, where that has been much, and not where it was little.
      class ConcurrencyHistory
        MOST = 1_000
        private_constant :MOST

        def initialize(record = nil)
          @usual = record.is_a?(Integer) ? record.clamp(0, MOST) : 0
          @most = 0
        end

        def seen(count)
          @most = count if count > @most
        end

        # All is answered. What was usual fades when less is asked.
        def over
          return if @most.zero?
          @usual = @most.clamp(@usual / 2, MOST)
          @most = 0
        end

        def connections = [@usual, @most].max

        def record = @usual
      end
    end
  end
end
