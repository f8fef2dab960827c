# frozen_string_literal: true

require "socket"
require_relative "../../support/clock"
require_relative "../client/dialer"
require_relative "../client/timeouts"

module Hikyaku
  module HTTP
    class Proxy
      # Makes a connection for a browser, and waits for it: where it may go is asked of {Destination}, as for everything that the proxy connects to.
      module Dial
        extend Support::Clock

        TIMEOUTS = Client::Timeouts.new
        private_constant :TIMEOUTS

        module_function

        def to(host, port, destinations)
          reader, writer = IO.pipe
          dialer = Client::Dialer.new(host.delete_prefix("[").delete_suffix("]"), port, timeouts: TIMEOUTS, wake: -> { wake(writer) }, check: destinations)
          until dialer.step(now)
            IO.select([reader], dialer.waiting, nil, [dialer.deadline - now, 0].max)
          end
          dialer.socket
        ensure
          dialer&.close
          [reader, writer].each { |io| io&.close }
        end

        # A name that is resolved when nobody waits any more is of no use.
        def wake(writer)
          writer.write_nonblock(".", exception: false)
        rescue IOError, SystemCallError
          nil
        end
        private_class_method :wake
      end
    end
  end
end
