# frozen_string_literal: true

require_relative "well_behaved"

module Misbehaving
  # Sends an empty line after each answer.
  class StrayLineEnd < WellBehaved
    def misbehave(connection, request) = connection.write("#{Answer.to(request).bytes}\r\n")
  end
end
