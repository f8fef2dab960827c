# frozen_string_literal: true

require_relative "well_behaved"

module Misbehaving
  # Does at each request what a test says, and behaves where that says nothing.
  class AsTold < WellBehaved
    # @yieldparam request [Request]
    # @yieldparam connection [Connection]
    # @yieldreturn [Answer, String, Symbol, nil] what is written; nil: the right answer; a Symbol: nothing
    def initialize(&told)
      @told = told
    end

    def misbehave(connection, request)
      case (answer = @told.call(request, connection))
      when nil then behave(connection, request)
      when Answer then connection.write(answer.bytes)
      when String then connection.write(answer)
      end
    end
  end
end
