# frozen_string_literal: true

require_relative "well_behaved"

module Misbehaving
  # Misbehaves at one request of each connection.
  class OnNth < WellBehaved
    # @param n [Integer] which, from 1
    def initialize(n: 1)
      @n = n
    end

    def due?(connection, _request) = connection.count == @n
  end
end
