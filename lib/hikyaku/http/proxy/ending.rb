# frozen_string_literal: true

require_relative "../../support/clock"

module Hikyaku
  module HTTP
    class Proxy
      # The end of a proxy: somebody asks for it, perhaps a signal's handler, and it waits for what is running, for so long and no longer.
      class Ending
        include Support::Clock

        # How often is looked whether all has ended, seconds.
        PAUSE = 0.02
        private_constant :PAUSE

        attr_reader :io

        def initialize
          @io, @writer = IO.pipe
          @grace = nil
          @at_once = false
        end

        # Who asks twice does not want to wait. Takes no lock.
        def ask(grace)
          @at_once = true if asked? || !grace.positive?
          @grace ||= grace
          @writer.write_nonblock(".", exception: false)
        rescue IOError
          nil # it is over
        end

        def asked? = !@grace.nil?

        def at_once? = @at_once

        attr_reader :grace

        def wait(most: @grace)
          deadline = now + [most, @grace].min
          until (over = yield) || @at_once || now >= deadline
            sleep PAUSE
          end
          over
        end

        def close = [@io, @writer].each(&:close)
      end
    end
  end
end
