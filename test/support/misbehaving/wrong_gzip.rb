# frozen_string_literal: true

require_relative "well_behaved"

module Misbehaving
  # Says that the body is gzip, which it is not.
  class WrongGzip < WellBehaved
    def misbehave(connection, request) = connection.write(Answer.to(request).with("Content-Encoding" => "gzip").bytes)
  end
end
