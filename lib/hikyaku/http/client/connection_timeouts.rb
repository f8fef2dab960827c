# frozen_string_literal: true

require_relative "../errors"

module Hikyaku
  module HTTP
    class Client
      # How long the other side of a connection may do nothing, and what is said when it has.
      class ConnectionTimeouts
        SILENCE = {write: "took nothing", first_byte: "gave no answer", head: "did not finish the head of its answer", read: "gave no more of its answer"}.freeze
        private_constant :SILENCE

        def initialize(route, timeouts)
          @route = route
          @timeouts = timeouts
        end

        def seconds(phase) = @timeouts.public_send(phase)

        def error(phase) = TimedOut.new("#{@route} #{SILENCE.fetch(phase)} for #{seconds(phase)} s", phase: phase)
      end
    end
  end
end
