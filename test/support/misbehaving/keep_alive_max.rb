# frozen_string_literal: true

require_relative "well_behaved"

module Misbehaving
  # Says how many requests a connection may still have, and keeps to it.
  class KeepAliveMax < WellBehaved
    # @param max [Integer] on one connection
    def initialize(max: 3)
      @max = max
    end

    def misbehave(connection, request)
      left = @max - connection.count
      connection.write(Answer.to(request).with((left > 0) ? {"Keep-Alive" => "timeout=5, max=#{left}"} : {"Connection" => "close"}).bytes)
      connection.close unless left > 0
    end
  end
end
