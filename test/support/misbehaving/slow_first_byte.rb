# frozen_string_literal: true

require_relative "on_nth"

module Misbehaving
  # Thinks before it answers.
  class SlowFirstByte < OnNth
    # @param n [Integer, nil] which request of each connection; nil: all
    # @param seconds [Numeric]
    def initialize(n: nil, seconds: 0.2)
      super(n: n)
      @seconds = seconds
    end

    def due?(connection, request) = @n.nil? || super

    def misbehave(connection, request)
      sleep(@seconds)
      behave(connection, request)
    end
  end
end
