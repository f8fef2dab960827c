# frozen_string_literal: true

require_relative "well_behaved"

module Misbehaving
  # Gives no length: the answer lasts until it closes. It does not say that it will.
  class AnswersWithoutLength < WellBehaved
    def misbehave(connection, request)
      connection.write(Answer.to(request).with("Content-Length" => nil).bytes)
      connection.close
    end
  end
end
