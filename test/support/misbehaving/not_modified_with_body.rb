# frozen_string_literal: true

require_relative "well_behaved"

module Misbehaving
  # Says that nothing has changed, and sends it.
  class NotModifiedWithBody < WellBehaved
    def due?(_connection, request) = request.method == "GET" && request.unchanged?(Misbehaving.etag_of(request.path))

    def misbehave(connection, request)
      body = Misbehaving.body_of(request.path)
      connection.write(Answer.to(request).with("Content-Length" => body.bytesize).bytes + body)
    end
  end
end
