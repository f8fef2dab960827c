# frozen_string_literal: true

require_relative "../../support/clock"

module Hikyaku
  module HTTP
    class Proxy
      # The shutdown of a proxy: a thread or a signal handler requests it, and it waits a limited time for the running exchanges.
      class Shutdown
        include Support::Clock

        # Seconds between two looks.
        PAUSE = 0.02
        private_constant :PAUSE

        attr_reader :io, :grace

        def initialize
          @io, @writer = IO.pipe
          @grace = nil
          @immediate = false
        end

        # The second request ends the grace. Takes no lock.
        def request(grace)
          @immediate = true if requested? || !grace.positive?
          @grace ||= grace
          @writer.write_nonblock(".", exception: false)
        rescue IOError
          nil # the proxy has ended
        end

        def requested? = !@grace.nil?

        def immediate? = @immediate

        # Waits until the block is true.
        def wait(max: @grace)
          deadline = now + [max, @grace].min
          until (over = yield) || @immediate || now >= deadline
            sleep PAUSE
          end
          over
        end

        def close = [@io, @writer].each(&:close)
      end
    end
  end
end
