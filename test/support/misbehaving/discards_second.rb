# frozen_string_literal: true

require_relative "well_behaved"

module Misbehaving
  # Answers the first request of what it read at once, and forgets the rest.
  class DiscardsSecond < WellBehaved
    def misbehave(connection, request)
      connection.discard
      behave(connection, request)
    end
  end
end
