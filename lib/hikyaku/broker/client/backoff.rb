# frozen_string_literal: true

module Hikyaku
  module Broker
    class Client
      # How long to wait before connecting again: doubled with each failure up to a limit, and half of it random, so that
      # clients that lost the same broker do not come back together.
      class Backoff
        BASE = 0.1
        MOST = 15.0
        private_constant :BASE, :MOST

        def initialize(random: Random)
          @random = random
          @failures = 0
        end

        # There was a connection: failures before it do not count any more.
        def reset
          @failures = 0
        end

        def next_pause(at_least: 0)
          grown = [BASE * 2**[@failures, 20].min, MOST].min
          @failures += 1
          at_least + grown * (0.5 + @random.rand / 2)
        end
      end
    end
  end
end
