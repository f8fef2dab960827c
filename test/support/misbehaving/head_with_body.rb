# frozen_string_literal: true

require_relative "well_behaved"

module Misbehaving
  # Answers HEAD as if it were GET.
  class HeadWithBody < WellBehaved
    def due?(_connection, request) = request.method == "HEAD"

    def misbehave(connection, request) = connection.write(Answer.to(request).bytes + Misbehaving.body_of(request.path))
  end
end
